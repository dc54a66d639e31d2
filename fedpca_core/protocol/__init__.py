"""The protocol of a run: the algorithm interface, the channel, the transcript and the trace.

What the steps of a method are written in is imported from here.
"""

from fedpca_core.protocol.algorithm import (
    Algorithm,
    Inbox,
    Plan,
    Reply,
    ServerState,
    Setting,
    Start,
    Step,
)

__all__ = ["Algorithm", "Inbox", "Plan", "Reply", "ServerState", "Setting", "Start", "Step"]
