"""Files read whole, and written whole or not at all."""

import json
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedpca_core.errors import InvalidInput


def read_whole(path: Path) -> bytes:
    """The content of a file, or of a pipe until its end; a device may have none.

    Raises OSError, ValueError: it cannot be read.
    """
    mode = path.stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise ValueError("it is a device")
    return path.read_bytes()


def write_whole(path: Path, content: str | bytes) -> None:
    """Write under another name first, then rename: a reader never sees half a file.

    Raises InvalidInput: the folder cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
        unfinished.replace(path)
    except (OSError, ValueError, RecursionError) as error:  # a path may hold a NUL, or be deep
        with suppress(OSError, ValueError):
            unfinished.unlink(missing_ok=True)
        why = getattr(error, "strerror", error)
        raise InvalidInput(
            f"{path} cannot be written ({why}); choose another folder with --out."
        ) from None


def notebook(title: str, **code: str) -> str:
    """A Jupyter notebook (nbformat 4.5): what it is, then cells of code by their names."""
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "what", "metadata": {}, "source": title}
    ]
    for name, source in code.items():
        cell = {"cell_type": "code", "id": name, "metadata": {}, "source": source}
        cells.append(cell | {"execution_count": None, "outputs": []})
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1)
