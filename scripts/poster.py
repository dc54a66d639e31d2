"""A run as one HTML file: the player with its views' bytes inside, for a browser without network.

What draws is the player's own frontend with the page's theme, so that a poster is the page's
picture. Views and the chart library travel as gzip in base64 and are opened by the browser.
"""

import base64
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from dashboard.player.component import FRONTEND, frontend_script
from dashboard.player.encode import header
from dashboard.shell.document import PRODUCT
from dashboard.shell.markup import html
from dashboard.shell.meanwhile import packed, unpacked

DASHBOARD = Path(__file__).resolve().parent.parent / "dashboard"
CHARTS = DASHBOARD / "static" / "plotly-charts.min.js"
CONFIG = DASHBOARD.parent / ".streamlit" / "config.toml"

#: The browser itself sees to it that a poster asks nobody for anything.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "font-src data:; img-src data: blob:"
)

_VIEW = '<div class="poster-view"><script type="text/plain">{}</script></div>'
_STORED = re.compile(_VIEW.format("([A-Za-z0-9+/=]+)"))
_MARKS = (
    (r":([a-z]+)-badge\[(?::material/\w+: ?)?(.*?)\]", r'<mark class="\1">\2</mark>'),
    (r"\[([^\]]+)\]\((https?://[^)\s]+)\)", r'<a href="\2">\1</a>'),
    (r"\*\*(.+?)\*\*", r"<b>\1</b>"),
    (r"`(.+?)`", r"<code>\1</code>"),
    (r"^- (.*)$", r"<li>\1</li>"),
)


def document(
    title: str, lead: str, parts: Sequence[str | bytes], *, live: str, colophon: str
) -> str:
    """A poster: HTML and views (of `dashboard.player.encode`) in one file, in their order.

    ``title``, ``lead`` and ``colophon``, which says what was run, are plain text; ``live`` is the
    address of the page that this is a picture of.
    """
    charts = any(header(part)["panels"] for part in parts if isinstance(part, bytes))
    charts_packed = packed(CHARTS.read_bytes()) if charts else ""
    marked = [part if isinstance(part, str) else _VIEW.format(packed(part)) for part in parts]
    return page(
        title,
        html("poster-body", title=title, lead=lead, parts=marked, colophon=colophon, live=live),
        head=f'<link rel="canonical" href="{escape(live)}">',
        foot=f'<script type="text/plain" id="poster-charts">{charts_packed}</script>\n'
        f'<script type="module">\n{frontend_script()}\n{_own("poster.js")}</script>',
    )


@dataclass(frozen=True)
class Turn:
    """A value of a dial: how it reads, the view of its run, and the address of its live page."""

    value: str
    #: None where it is the run of the poster itself.
    view: bytes | None
    live: str


def dials(turns: Mapping[str, Sequence[Turn]]) -> str:
    """Dials that put other runs into the first view of a poster, one turned at a time."""
    owns = {label: [turn.view for turn in turns[label]].index(None) for label in turns}
    return html("poster-dials", dials=turns, owns=owns, packed=packed) if turns else ""


def page(title: str, body: str, *, head: str = "", foot: str = "") -> str:
    """An HTML file in the colours and fonts of the pages; ``body``, ``head``, ``foot`` are HTML."""
    more = {"policy": POLICY, "product": PRODUCT, "style": _style()}
    return html("poster", title=title, body=body, head=head, foot=foot, **more) + "\n"


def views(poster: str) -> list[bytes]:
    return [unpacked(stored) for stored in _STORED.findall(poster)]


def markup(text: str) -> str:
    """The little Markdown that pages use (bold, code, links, badges, lists) as HTML."""
    text = escape(text.strip(), quote=False).replace(r"\$", "$")
    for pattern, marked in _MARKS:
        text = re.sub(pattern, marked, text, flags=re.MULTILINE)
    text = re.sub(r"<li>.*</li>", lambda items: f"<ul>{items[0]}</ul>", text, flags=re.DOTALL)
    return text.replace("\n\n", "<br>")


def _own(name: str) -> str:
    return (FRONTEND / name).read_text(encoding="utf-8")


@cache
def _style() -> str:
    theme = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["theme"]
    light, dark = (_variables(theme[scheme]) for scheme in ("light", "dark"))
    return "\n".join(
        (
            *(_font(face) for face in theme["fontFaces"]),
            f":root {{ color-scheme: light dark; {_variables(theme)} {light} }}",
            f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
            (DASHBOARD / "page.css").read_text(encoding="utf-8"),
            _own("replay.css"),
            _own("poster.css"),
        )
    )


def _variables(values: Mapping[str, Any]) -> str:
    """Settings of a theme as the CSS variables that Streamlit makes of them."""
    lists = {name: one if isinstance(one, list) else [one] for name, one in values.items()}
    return " ".join(
        f"--st-{re.sub('[A-Z]', lambda big: '-' + big[0].lower(), name)}: {', '.join(texts)};"
        for name, texts in lists.items()
        if all(isinstance(one, str) for one in texts)
    )


def _font(face: Mapping[str, str]) -> str:
    content = (DASHBOARD / face["url"].removeprefix("app/")).read_bytes()
    where = f"unicode-range: {face['unicodeRange']};" if "unicodeRange" in face else ""
    return (
        f"@font-face {{ font-family: '{face['family']}'; font-weight: {face['weight']}; {where} "
        f"src: url(data:font/woff2;base64,{base64.b64encode(content).decode()}); }}"
    )
