"""A round over Flower against the same round in one process; run it where Flower is installed.

``.venv-flower/bin/python -m bench flower``: five small clients, records and handlers but no
processes, in processor time. ``--deployed`` adds a SuperLink and three SuperNodes on this machine,
in seconds on the clock.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fedpca_core as fp

#: A round is the difference of two runs, so that what happens once is left out.
SHORT, LONG = 10, 60
SECURE = fp.Channel(secure_aggregation=True)


def a_round(run: Callable[..., Any]) -> float:
    """Processor milliseconds of one more round."""
    run(rounds=SHORT)  # the first run of a process imports and fetches memory
    spent = []
    for rounds in (SHORT, LONG):
        began = time.process_time()
        run(rounds=rounds)
        spent.append(time.process_time() - began)
    return 1e3 * (spent[1] - spent[0]) / (LONG - SHORT)


def in_this_process(folder: Path) -> None:
    """FAPS and SSI, simulated and over a grid, open and under secure sums."""
    from tests.engines.small_federation import over_a_grid, written

    problem = written(folder)
    print("processor milliseconds a round   simulated   over a grid   under secure sums")
    for method in (fp.SSI(3), fp.FAPS(3)):
        ways = (
            partial(fp.simulate, problem, method),
            partial(over_a_grid, folder, method),
            partial(over_a_grid, folder, method, channel=SECURE),
        )
        print(f"{method.title:30s}" + "".join(f"{a_round(way):14.2f}" for way in ways))


def on_nodes(folder: Path) -> None:
    """FAPS on a SuperLink and three SuperNodes, each with a file of its own."""
    from fedpca_core.study.pca_settings import ConvergeSettings
    from tests.engines.deployment import Deployment
    from tests.engines.small_federation import blocks

    data = [folder / f"records-{client}.npy" for client in range(3)]
    for path, block in zip(data, blocks(), strict=False):
        np.save(path, block.T)
    for secure in (False, True):
        settings = folder / f"settings-{secure}.json"
        chosen = ConvergeSettings(clients=3, components=3, secure_aggregation=secure)
        settings.write_text(chosen.to_json())
        with Deployment(folder / f"federation-{secure}", data) as running:
            trace = running.trace(running.submit(settings, method="faps", rounds=4))
        rounds = ", ".join(f"{seconds:.1f}" for seconds in np.diff(trace.seconds))
        print(f"seconds a round, three nodes{', secure sums' if secure else ''}: {rounds}")


def main(deployed: bool = False) -> None:
    """Print both tables, the second where it is asked for."""
    with tempfile.TemporaryDirectory() as folder:
        in_this_process(Path(folder))
        if deployed:
            on_nodes(Path(folder))
