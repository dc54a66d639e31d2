"""One fit of one peer, in an environment that has it: ``python bench/peers.py NAME DATA.npz``.

Imports nothing of this project. Prints JSON: components, seconds, version.
"""

import json
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np


def scikit_learn(rows: Any, components: int, epsilon: float, norm: float, seed: int) -> Any:
    """PCA, without any epsilon."""
    from sklearn.decomposition import PCA

    return PCA(components).fit(rows).components_


def incremental(rows: Any, components: int, epsilon: float, norm: float, seed: int) -> Any:
    """IncrementalPCA, in ten parts."""
    from sklearn.decomposition import IncrementalPCA

    return IncrementalPCA(components, batch_size=len(rows) // 10).fit(rows).components_


def diffprivlib(rows: Any, components: int, epsilon: float, norm: float, seed: int) -> Any:
    """Imtiaz and Sarwate's algorithm on data that are centred already."""
    from diffprivlib.models import PCA

    model = PCA(components, epsilon=epsilon, data_norm=norm, centered=True, random_state=seed)
    return model.fit(rows).components_


def opendp(rows: Any, components: int, epsilon: float, norm: float, seed: int) -> Any:
    """Eigenvalues and eigenvectors one after the other, mean included."""
    import opendp.prelude as dp
    from opendp.extras.sklearn.decomposition import PCA

    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics", "floating-point")
    model = PCA(
        epsilon=epsilon,
        row_norm=norm,
        n_samples=len(rows),
        n_features=rows.shape[1],
        n_components=components,
    )
    return model.fit(rows).components_


PEERS = {
    "scikit-learn": (scikit_learn, "scikit-learn"),
    "scikit-learn, incremental": (incremental, "scikit-learn"),
    "diffprivlib": (diffprivlib, "diffprivlib"),
    "OpenDP": (opendp, "opendp"),
}


def main(name: str, file: str) -> None:
    """Fit once and print."""
    with np.load(file) as given:
        rows, norm = given["rows"], float(given["norm"])
        epsilon, components, seed = float(given["epsilon"]), int(given["components"]), given["seed"]
    fit, package = PEERS[name]
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    found = np.asarray(fit(rows.copy(), components, epsilon, norm, int(seed)))
    seconds = time.perf_counter() - began
    said = {"components": found.tolist(), "seconds": seconds, "version": version(package)}
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
