"""The heart-disease table of four hospitals as whole numbers: ages, pressures, codes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from fedpca_core.errors import require
from fedpca_core.problems.csv_file import read_csv
from fedpca_core.problems.image_files import data_folder

_FILE = "heart_disease_by_hospital.csv"
#: Columns whose numbers are names.
_CODED = ("cp", "restecg", "slope", "ca", "thal")


def heart_table() -> pd.DataFrame:
    """Complete rows with codes as columns of zeros and ones: 25 columns.

    Source: Janosi, Steinbrunn, Pfisterer and Detrano, "Heart Disease", UCI repository (1989).

    Raises
    ------
    InvalidInput
        The file is not in the data folder.
    """
    path = Path(data_folder()) / _FILE
    require(path.is_file(), f"There is no {_FILE} in the data folder; put it there.")
    frame = read_csv(path).drop(columns=["hospital", "num"]).dropna()
    return pd.get_dummies(frame, columns=list(_CODED)).astype(float)
