"""Settings in, results out, and what is seen of them as plain data.

What a study is written in is imported from here.
"""

from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import InPieces, Study, registered, stacked
from fedpca_core.study.sweep import Measured, Point, Sweep, Swept
