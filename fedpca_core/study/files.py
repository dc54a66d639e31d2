"""Files read whole, and written whole or not at all."""

import stat
from contextlib import suppress
from pathlib import Path

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
