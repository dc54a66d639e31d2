"""The one exception of the core: a sentence a visitor can act on."""

from __future__ import annotations


class InvalidInput(ValueError):
    """An input does not fit; the text names what was wrong, the value, and the remedy.

    The dashboard shows the text as it is, so the core and the page say the same thing.
    """


def require(condition: bool, sentence: str) -> None:
    """Raise `InvalidInput` with ``sentence`` unless ``condition`` holds."""
    if not condition:
        raise InvalidInput(sentence)
