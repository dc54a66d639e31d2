"""One epsilon spent in every way, beside medians that another program measured before.

``python -m bench ways`` runs the presets of Model I and prints both, ``--only ways-40-2000`` some
of them. The same tables as CSV: ``python -m fedpca_core run`` on such a preset.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from fedpca_core.questions.privacy.presets import PRESETS, SIZES
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.spending import WaysToSpend
from fedpca_core.steps import outcome

#: Medians of 10 runs at 20 clients, epsilon = 1 and delta = 1e-6, for each of `SIZES`; None where
#: nothing was measured. "single" took the best of T = 4, 5 and 6 in hindsight, ours T = 6. FAPS
#: ("source") lost its way at 100 features then; today it does with 0.3 of its penalty.
BEFORE: dict[str, tuple[float | None, ...]] = {
    "published": (0.120, 0.394, None, 0.985, 0.997, None),
    "exact": (0.0152, 0.0505, None, 0.232, 0.786, None),
    "single": (0.0129, 0.0401, 0.0988, 0.154, 0.694, 0.997),
    "orthogonal": (0.0046, 0.0189, 0.0499, 0.069, 0.283, 0.892),
    "source": (0.0043, None, None, 0.066, 0.99, None),
    "covariance": (0.0045, 0.0149, 0.0377, 0.068, 0.223, 0.587),
    "shared_products": (0.0035, 0.0109, 0.0281, 0.053, 0.165, 0.420),
    "shared_orthogonal": (0.0011, 0.0042, 0.0114, 0.016, 0.063, 0.170),
    "shared_covariance": (0.0010, 0.0033, 0.0084, 0.015, 0.050, 0.127),
    "colluding": (0.0014, 0.0047, 0.0119, 0.021, 0.071, 0.180),
}
#: Medians further apart than this are marked.
ALIKE = 0.15


def main(options: Sequence[str] = ()) -> None:
    """Print one line for each way at each size."""
    parser = argparse.ArgumentParser(prog="python -m bench ways")
    parser.add_argument("--only", nargs="+", default=[], metavar="PRESET")
    wanted = parser.parse_args(options).only
    presets = {f"ways-{features}-{records}": at for at, (features, records) in enumerate(SIZES)}
    for preset in PRESETS:
        if preset.name not in (wanted or presets):
            continue
        print(f"{preset.title}\n{'':<40}{'before':>10}{'now':>10}{'ratio':>8}")
        assert isinstance(preset.settings, PrivacySettings)
        found = outcome(WaysToSpend().run(preset.settings))
        assert found is not None
        for key, one in found.spent.items():
            earlier = BEFORE[key][presets[preset.name]] if key in BEFORE else None
            compared = ""
            if earlier is not None:
                ratio = one.run.final / earlier
                compared = f"{ratio:>8.2f}" + ("  *" if abs(ratio - 1) > ALIKE else "")
            print(
                f"{one.title:<40}{earlier or '–':>10}{one.run.final:>10.4f}{compared}", flush=True
            )


if __name__ == "__main__":
    main(sys.argv[1:])
