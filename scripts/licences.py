"""The licences of everything in this environment: ``python -m scripts.licences``.

Read from what the installed packages say of themselves, and nothing else.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageMetadata, distributions


def licence(about: PackageMetadata) -> str:
    """The licence as a package states it: an expression, a text's first line, or a classifier."""
    stated = str(about.get("License-Expression") or "") or next(
        (
            entry.rpartition(" :: ")[2]
            for entry in about.get_all("Classifier") or ()
            if entry.startswith("License ::")
        ),
        "",
    )
    lines = str(about.get("License") or "").strip().splitlines()
    return stated or (lines[0][:60] if lines else "not stated")


def main() -> int:
    """Print a table; returns 1 where a package states none."""
    found = {
        str(one.metadata["Name"]): (one.version, licence(one.metadata)) for one in distributions()
    }
    for name, (version, terms) in sorted(found.items(), key=lambda entry: entry[0].casefold()):
        print(f"{name:<32} {version:<16} {terms}")
    return int(any(terms == "not stated" for _, terms in found.values()))


if __name__ == "__main__":
    sys.exit(main())
