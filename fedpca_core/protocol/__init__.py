"""The protocol of a run: the algorithm interface, the channel, the transcript and the trace."""
