"""The licences of everything in this environment: ``python -m scripts.licences``.

Read from what the installed packages say of themselves, and nothing else.
"""

import sys
from collections.abc import Mapping
from importlib.metadata import distributions
from typing import Any


def licence(about: Mapping[str, Any]) -> str:
    """The licence as a package states it: an expression, a classifier, or a text's first line."""
    stated = about.get("license_expression") or next(
        (
            entry.rpartition(" :: ")[2]
            for entry in about.get("classifier", ())
            if entry.startswith("License ::")
        ),
        "",
    )
    lines = str(about.get("license", "")).strip().splitlines()
    return str(stated) or (lines[0][:60] if lines else "not stated")


def main() -> int:
    """Print a table; returns 1 where a package states none."""
    found = {one.name: (one.version, licence(one.metadata.json)) for one in distributions()}
    for name, (version, terms) in sorted(found.items(), key=lambda entry: entry[0].casefold()):
        print(f"{name:<32} {version:<16} {terms}")
    return int(any(terms == "not stated" for _, terms in found.values()))


if __name__ == "__main__":
    sys.exit(main())
