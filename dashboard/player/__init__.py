"""The replay view: images, charts and a read-out that one transport bar moves through the rounds.

A page computes a whole run, hands it over once, and the reader scrubs, plays and zooms in the
browser without asking the server again.

    prepared(
        key="run",
        rounds=100,
        panels=[Panel(key="error", title="Error", x_title="round", y_title="sin θ", curves=...)],
        images=[[Images("Estimate", to_uint8(frames, -1, 1), low=-1, high=1)]],
    )()

`chart` shows panels without the transport.
"""

from dashboard.player.component import again, chart, prepared
from dashboard.player.stage import Lecture, PlayedRun, Side, Stage
