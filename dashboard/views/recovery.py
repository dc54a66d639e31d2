"""FAPS, Figure 1(b) at live size: rounds to recover a client against rounds to converge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from dashboard.player import Curve, Panel, chart
from dashboard.shell import jobs
from fedpca_core import attacks
from fedpca_core.attacks import scores
from fedpca_core.studies.build import attacked_run, build_problem
from fedpca_core.studies.pca_settings import AttackSettings

FEATURES = (20, 30, 40, 50, 60)
#: Both the reconstruction and the KKT violation count as done below this, as in the paper.
DONE = 1e-5
LONGEST = 500


def show(configuration: AttackSettings) -> None:
    """The sweep over features as a job and its chart."""
    asked = replace(
        configuration.run_key(), rounds=LONGEST, attack="linear", attacked=("ssi",), starts=1
    )

    def draw(found: pd.DataFrame) -> None:
        curves = tuple(
            Curve(name=name, x=found["features"], y=found[column], colour=colour, marker=True)
            for name, column, colour in (
                ("rounds to recover the client", "recovered", "heuristic"),
                ("rounds to converge", "converged", "SSI"),
            )
        )
        chart(
            key="recovery_sweep",
            panels=[
                Panel(
                    key="recovery_sweep",
                    title="Recovered before converged, at every size (simulation only)",
                    x_title="features",
                    y_title=f"SSI rounds to {DONE:.0e}".replace("e-0", "e-"),
                    curves=curves,
                    follows=False,
                    description="Rounds until the linear attack on SSI has recovered the client, "
                    "and until SSI has converged, against the number of features.",
                )
            ],
        )

    jobs.show(("sweep", asked), lambda job: _work(asked, job), draw, name="recovery_sweep")


def _work(configuration: AttackSettings, job: jobs.Job) -> pd.DataFrame | None:
    rows: list[dict[str, float]] = []
    for position, features in enumerate(FEATURES):
        if not job.report(position / len(FEATURES), f"{features} features"):
            break
        chosen = replace(configuration, features=features)
        problem = build_problem(chosen)
        trace, table = attacked_run(problem, "ssi", chosen)
        truth = problem.client_data.only(np.array([chosen.client])).dense()[0]
        # The attack needs some features/components rounds; later ones add nothing.
        enough = 4 * (features // chosen.components + 1)
        path = attacks.linear_path(trace.transcript, chosen.client, enough)
        errors = scores.relative_errors(path.estimates, truth)
        rows.append(
            {
                "features": features,
                "recovered": _first(errors <= DONE),
                "converged": _first(table["kkt"].to_numpy() <= DONE),
            }
        )
        job.publish(pd.DataFrame(rows))
    return pd.DataFrame(rows) if rows else None


def _first(reached: np.ndarray) -> float:
    """Index of the first True, NaN if none: the curve then has a gap."""
    hits = np.flatnonzero(reached)
    return float(hits[0]) if len(hits) else float("nan")
