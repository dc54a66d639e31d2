"""The heart-disease table of four hospitals as whole numbers: ages, pressures, codes."""

import pandas as pd

from fedpca_core.problems.data_sets import files_of
from fedpca_core.problems.table_file import read_csv

#: Columns whose numbers are names.
_CODED = ("cp", "restecg", "slope", "ca", "thal")


def heart_table() -> pd.DataFrame:
    """Complete rows with codes as columns of zeros and ones: 25 columns.

    Source: Janosi, Steinbrunn, Pfisterer and Detrano, "Heart Disease", UCI repository (1989).
    """
    (path,) = files_of("heart")
    frame = read_csv(path.read_bytes()).drop(columns=["hospital", "num"]).dropna()
    return pd.get_dummies(frame, columns=list(_CODED)).astype(float)
