"""The Flower app of the server: one loop for every method."""

from __future__ import annotations

from logging import getLogger
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedpca_core.protocol.trace import Trace
from fedpca_core.protocol.trace_file import save_trace
from fedpca_flower.job import Job
from fedpca_flower.roster import Roster
from fedpca_flower.rounds import Rounds

app = ServerApp()
_LOG = getLogger("fedpca_flower")


def run(grid: Grid, job: Job) -> Trace:
    """Run a job on the clients of a grid.

    Raises
    ------
    InvalidInput
        Clients that do not come or fit, parameters that do not fit, a round that nobody answers.
    """
    roster = Roster(grid, job.clients, job.timeout, job.public())
    roster.gather(job.patience)
    rounds = Rounds(roster, job)
    for finished in rounds:
        _LOG.info(
            "Round %d of %d: %d bytes up, %d down, %.2f s",
            finished.index,
            job.rounds,
            finished.bytes_up,
            finished.bytes_down,
            finished.seconds,
        )
    return rounds.trace()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run what the run configuration asks for and write the trace where it says (``out``)."""
    trace = run(grid, Job.of(context.run_config))
    out = Path(str(context.run_config.get("out", "trace.npz")))
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = out.with_name(f".{out.name}.part.npz")
    save_trace(trace, unfinished)
    unfinished.replace(out)
    _LOG.info("Wrote the trace of %d rounds to %s", trace.rounds, out)
