"""Files written whole or not at all."""

from contextlib import suppress
from pathlib import Path

from fedpca_core.errors import InvalidInput


def write_whole(path: Path, content: str | bytes) -> None:
    """Write under another name first, then rename: a reader never sees half a file.

    Raises InvalidInput: the folder cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            unfinished.write_text(content, encoding="utf-8")
        else:
            unfinished.write_bytes(content)
        unfinished.replace(path)
    except (OSError, ValueError) as error:  # a path may hold a NUL
        with suppress(OSError, ValueError):
            unfinished.unlink(missing_ok=True)
        why = getattr(error, "strerror", error)
        raise InvalidInput(
            f"{path} cannot be written ({why}); choose another folder with --out."
        ) from None
