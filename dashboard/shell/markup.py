"""The markup of our own parts: files of ``dashboard/html``, which escape what is put into them."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_FILES = Environment(
    loader=FileSystemLoader(Path(__file__).resolve().parents[1] / "html"),
    autoescape=True,
    undefined=StrictUndefined,
    lstrip_blocks=True,
    trim_blocks=True,
)


def html(name: str, **filled: object) -> str:
    """The file ``name.html`` with these values in its gaps; those marked safe there are HTML."""
    return _FILES.get_template(f"{name}.html").render(filled)
