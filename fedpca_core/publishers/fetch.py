"""The command `data`: what data sets there are, and how the files of one come to this machine.

Nothing else in the core opens a connection.
"""

import hashlib
import json
import shutil
import sys
import textwrap
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from fedpca_core.errors import InvalidInput, require, require_known
from fedpca_core.problems.data_sets import COMMAND, DATA_SETS, DataSet, Original, find
from fedpca_core.problems.table_file import readable
from fedpca_core.publishers.convert import converted
from fedpca_core.study.files import write_whole

#: How often a file is asked for again.
RETRIES = 3
#: What was fetched, from where and when, with checksums: a file beside the data.
SOURCES = "sources.json"
#: Below the folder of data files: what has been fetched and not been converted yet.
ORIGINALS = "originals"
_CHUNK_BYTES = 1 << 16


def by_name(name: str) -> DataSet:
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
    paragraphs = [
        f"Data files are put into {folder}, and found there (FEDPCA_DATA names another folder)."
    ]
    paragraph = textwrap.TextWrapper(
        100, "  ", "    ", break_long_words=False, break_on_hyphens=False
    )
    for one in DATA_SETS.values():
        lines = [
            f"{one.title}: {one.purpose}; {one.holds}.",
            f"{state(one, folder)}.",
            f"Licence: {one.licence}. {one.page}",
            f"{one.citation}.",
        ]
        paragraphs.append("\n".join([one.name, *map(paragraph.fill, lines)]))
    return "\n\n".join(paragraphs)


def provide(
    one: DataSet, folder: Path, given: Sequence[Path] = (), retries: int = RETRIES
) -> list[Path]:
    """Put the files of a data set into the folder of data files, and say which.

    ``given``: Files, folders or zip archives on this machine that hold the originals; empty: they
        are fetched from the publisher.

    Raises InvalidInput: nothing to fetch, a publisher who asks for a form, an original that cannot
    be had or is not what it should be. Nothing of the data set is stored then.
    """
    require(bool(one.originals), f"{one.title} comes along and need not be fetched.")
    waiting = folder / ORIGINALS / one.key  # until they have been converted
    files = _taken(one, given) if given else _fetched(one, waiting, retries)
    try:
        made = converted(one.key, files)
    except InvalidInput:
        for original in one.originals:
            if not original.sha256:  # nothing says that it is whole
                (waiting / original.name).unlink(missing_ok=True)
        raise
    for name, content in made.items():
        write_whole(folder / name, content)
    about = {
        "on": date.today().isoformat(),
        "page": one.page,
        "originals": {
            original.name: {"address": original.address, "sha256": _sha256(files[original.name])}
            for original in one.originals
        },
        "files": {name: _sha256(content) for name, content in made.items()},
    }
    if not given:
        shutil.rmtree(waiting, ignore_errors=True)
    _note(folder / SOURCES, one.key, about)
    return [folder / name for name in made]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _note(path: Path, key: str, about: object) -> None:
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        noted = {}
    write_whole(path, json.dumps({**noted, key: about}, indent=2))


def _fetched(one: DataSet, place: Path, retries: int) -> dict[str, bytes]:
    """The originals from their publisher, by name."""
    names = " and ".join(original.name for original in one.originals)
    require(
        not one.by_form,
        f"{one.title} has no address of its own, its publisher gives it out through a page: open "
        f"{one.page}, download {names} there (or the archive that "
        f"holds them), and give the path: {COMMAND} {one.name} --from PATH",
    )
    return {each.name: _download(one, each, place, retries).read_bytes() for each in one.originals}


def _download(one: DataSet, original: Original, place: Path, retries: int) -> Path:
    """One file, checked, with a bar where somebody watches; one that is here is not asked for."""
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    asked = pooch.create(
        path=place,
        base_url="",
        registry={original.name: f"sha256:{original.sha256}" if original.sha256 else None},
        urls={original.name: original.address},
        retry_if_failed=retries,
    )
    by_hand = (
        f"open {one.page}, download it there, and give the path: {COMMAND} {one.name} --from PATH"
    )
    downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=_CHUNK_BYTES)
    try:
        return Path(asked.fetch(original.name, downloader=downloader))
    except requests.exceptions.RequestException as error:
        told = str(error)[:200].rstrip(".")
        raise InvalidInput(
            f"{original.name} could not be fetched from {original.address} ({told}); try again, or "
            f"{by_hand}"
        ) from None
    except ValueError:  # the checksum, after all attempts
        raise InvalidInput(
            f"What {original.address} gives is not {original.name} as it was: its SHA-256 differs "
            f"from {original.sha256}, and nothing was stored. It was damaged on its way, or its "
            f"publisher has changed it; {by_hand}"
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"{place} cannot be written ({error.strerror}); choose another folder with --to."
        ) from None


def _taken(one: DataSet, given: Sequence[Path]) -> dict[str, bytes]:
    """The originals by their publisher's names, from paths on this machine."""
    paths: list[Path] = []
    for path in given:
        require(path.exists(), f"There is no {path}; give the path of a file or a folder.")
        paths += sorted(path.rglob("*")) if path.is_dir() else [path]
    files = {}
    for original in one.originals:
        found = next(_called(original.name.casefold(), paths), None)
        if found is None:
            raise InvalidInput(
                f"{original.name} is in none of {', '.join(map(str, given))}; it belongs to "
                f"{one.title} ({one.page})."
            )
        place, files[original.name] = found
        require(
            original.sha256 in ("", _sha256(files[original.name])),
            f"{place} is not {original.name} as its publisher gave it out: its SHA-256 differs "
            f"from {original.sha256}; download it again from {one.page}",
        )
    return files


def _called(wanted: str, paths: Sequence[Path]) -> Iterator[tuple[Path, bytes]]:
    """Files of that name in any capitals, with their places: as they are, then in archives."""
    for path in paths:
        if path.name.casefold() == wanted:
            yield path, path.read_bytes()
    for path in paths:
        if path.suffix.lower() != ".zip":
            continue
        remedy = "; download it again."
        with readable(f"{path} cannot be unpacked", remedy), zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                if entry.rpartition("/")[2].casefold() == wanted:
                    yield path / entry, archive.read(entry)
