"""What there is, what it is for, whose it is, and how to come by the rest, as text."""

import textwrap
from pathlib import Path

from fedpca_core.errors import require_known
from fedpca_core.problems.data_sets import COMMAND, DATA_SETS, DataSet, find

_WIDTH = 100


def by_name(name: str) -> DataSet:
    """The data set that the command calls so.

    Raises InvalidInput: there is none.
    """
    names = {one.name: one for one in DATA_SETS.values()}
    require_known("data set", name, names)
    return names[name]


def state(one: DataSet, folder: Path) -> str:
    """Whether a data set is here, and what to do where it is not, or not all of it."""
    found = find(one.key, folder)
    if one.by_form:
        get = f"“{COMMAND} {one.name}” says where to get it ({one.megabytes:.0f} MB)"
    elif one.originals:
        get = f"“{COMMAND} {one.name}” fetches {one.megabytes:.0f} MB"
    else:
        get = ""
    if found is None:
        return f"not here: {get}"
    if not found.files:
        return "here: comes with scikit-learn"
    if not found.bundled:
        return f"found in {found.files[0].parent}"
    return f"here: {one.sample} comes along; {get}" if one.sample else "here: comes along"


def listing(folder: Path) -> str:
    """All data sets, a paragraph each."""
    paragraphs = [
        f"Data files are put into {folder}, and found there (FEDPCA_DATA names another folder)."
    ]
    for one in DATA_SETS.values():
        lines = [
            f"{one.title}: {one.purpose}; {one.holds}.",
            f"{state(one, folder)}.",
            f"Licence: {one.licence}. {one.page}",
            f"{one.citation}.",
        ]
        body = [
            textwrap.fill(
                line,
                _WIDTH,
                initial_indent="  ",
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            for line in lines
        ]
        paragraphs.append("\n".join([one.name, *body]))
    return "\n\n".join(paragraphs)
