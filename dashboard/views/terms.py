"""Four terms, each in a small picture where it is first used."""

from base64 import b64encode
from pathlib import Path

import streamlit as st

from fedpca_core.study.parts import names

#: Drawn by hand, to be seen on light paper and on dark.
_PICTURES = Path(__file__).resolve().parent.parent / "terms"


def row(terms: tuple[str, ...]) -> None:
    """The pictures of some terms side by side."""
    if terms:
        told = names("story-terms")
        drawn = {name: b64encode((_PICTURES / f"{name}.svg").read_bytes()) for name in terms}
        cells = "".join(
            f'<figure><img alt="" src="data:image/svg+xml;base64,{drawn[name].decode()}">'
            f"<figcaption>{told[name]}</figcaption></figure>"
            for name in terms
        )
        st.html(f'<div class="fp-terms">{cells}</div>')
