"""Headless runs: ``python -m fedpca_core COMMAND``; ``--help`` lists the commands."""

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from threadpoolctl import threadpool_limits

from fedpca_core.errors import InvalidInput, require, visible
from fedpca_core.papers.experiment import Size
from fedpca_core.papers.registry import EXPERIMENTS, entries_of, experiment
from fedpca_core.papers.results import commit, provenance, reproduce, summary, write_results
from fedpca_core.problems.data_sets import data_folder, require_here
from fedpca_core.publishers.fetch import by_name, listing, provide
from fedpca_core.questions.catalogue import KINDS, PRESETS, read_settings, studies_of
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.settings import Settings
from fedpca_core.steps import Step, outcome
from fedpca_core.study.files import read_whole, write_whole
from fedpca_core.study.own_data import NoFile, OwnData

#: Tables with more rows are written, not printed.
PRINTED_ROWS = 40
#: Exit statuses: an input that does not fit, and a fault of the program's own.
REFUSED, FAULT = 2, 70


class _Parser(argparse.ArgumentParser):
    """Whose complaints may be printed to a terminal, whatever they quote."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


def _commands() -> argparse.ArgumentParser:
    """Every command with its arguments and, as ``do``, the function that says more of it."""
    parser = _Parser(prog="python -m fedpca_core", description="Headless runs.")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(do: Callable[[Any], int | None], short: str) -> argparse.ArgumentParser:
        name = do.__name__.removeprefix("_")
        added = commands.add_parser(name, help=short, description=do.__doc__)
        added.set_defaults(do=do)
        return added

    run = command(_run, "run a settings file")
    for asked in (run, command(_check, "what a deployment gives away")):
        asked.add_argument("file", type=Path)
        asked.add_argument("--out", type=Path, help="folder for all tables and run.json")
    run.add_argument("--table", type=Path, help="your own file, where the settings ask for one")
    config = command(_config, "print a settings file")
    config.add_argument("kind", choices=sorted(KINDS))
    config.add_argument("changes", nargs="*", metavar="NAME=VALUE")
    presets = command(_presets, "list the presets, or print one")
    presets.add_argument("name", nargs="?")
    again = command(_reproduce, "run a table or figure of a paper")
    again.add_argument("name", nargs="?")
    again.add_argument("--list", action="store_true", help="what there is")
    again.add_argument("--paper-size", action="store_true", help="the paper's own sizes")
    again.add_argument("--seeds", type=int, default=5)
    again.add_argument("--only", nargs="+", default=[], metavar="SERIES")
    again.add_argument("--out", type=Path, default=Path("reproduced"))
    data = command(_data, "list public data sets, or fetch some")
    data.add_argument("names", nargs="*", metavar="NAME")
    local = "files, folders or zip archives on this machine that hold the publisher's files"
    data.add_argument(
        "--from", dest="given", nargs="+", type=Path, default=[], metavar="PATH", help=local
    )
    data.add_argument("--to", type=Path, help="folder for the data files")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (2 for input that does not fit, 70 for a fault)."""
    given = _commands().parse_args(arguments)
    try:
        return int(given.do(given) or 0)
    except NoFile as refusal:
        _say(f"{refusal} Give it with --table.", sys.stderr)
        return REFUSED
    except InvalidInput as refusal:
        _say(str(refusal), sys.stderr)
        return REFUSED
    except MemoryError:
        _say("This machine has not enough memory for that; choose smaller sizes.", sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read the output has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if "FEDPCA_DEBUG" in os.environ:
            raise
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        place = f"{Path(frame.f_code.co_filename).name}, line {line}"
        _say(
            f"This is a fault of the program ({type(error).__name__}: {error}; {place}); please "
            "report it with the settings. FEDPCA_DEBUG=1 shows the whole way there.",
            sys.stderr,
        )
        return FAULT


def _say(text: str, where: TextIO | None = None) -> None:
    """Print lines in which nothing can steer a terminal: names come from files of strangers."""
    print("\n".join(map(visible, text.split("\n"))), file=where)


def _settings(file: Path) -> Settings:
    try:
        text = read_whole(file).decode()
    except (OSError, ValueError) as error:  # a path may hold a NUL, a file no text
        raise InvalidInput(
            f"The settings file {file} cannot be read ({getattr(error, 'strerror', error)}); give "
            "a JSON file."
        ) from None
    return read_settings(text)


def _run(given: argparse.Namespace) -> None:
    """Run every study of the page that the file is for, as its download button or config wrote it.

    Short tables are printed. With --out all are written as CSV, and settings, versions and seed.
    """
    data = None if given.table is None else OwnData.of(given.table)
    _studies(_settings(given.file), given.out, data)


def _check(given: argparse.Namespace) -> None:
    """What the deployment in a file of the kind “check” gives away, and what stops it."""
    settings = _settings(given.file)
    require(
        isinstance(settings, CheckSettings),
        f"This file is of the kind “{settings.kind}” and describes no deployment; write one with "
        "“python -m fedpca_core config check”.",
    )
    _studies(settings, given.out, None)


def _studies(settings: Settings, out: Path | None, data: OwnData | None) -> None:
    written, studies = list[str](), studies_of(settings)
    for study in studies:
        require_here(study.needs(settings))
    for study in studies:
        with threadpool_limits(limits=1):
            result = outcome(study.run(settings, data), _report)
        _clear()
        for name, frame in study.tables(result, settings).items():
            if len(frame) <= PRINTED_ROWS:
                _say(f"{study.title}: {name}")
                _say(frame.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
            if out is not None:
                write_whole(out / f"{study.key}-{name}.csv", frame.to_csv(index=False))
                written.append(f"{study.key}-{name}.csv")
    if out is not None:
        record = {  # what a run can be repeated from
            "settings": json.loads(settings.to_json()),
            "own_file": None if data is None else {"name": data.name, "sha256": data.digest},
            **provenance(),
        }
        write_whole(out / "run.json", json.dumps(record, indent=2))
        _say(f"Wrote {', '.join([*written, 'run.json'])} to {out}.")


def _config(given: argparse.Namespace) -> None:
    """Print a settings file with some values changed: config converge features=60 starts=5."""
    values: dict[str, object] = {}
    parameters = KINDS[given.kind].parameters()
    for change in given.changes:
        name, equals, text = change.partition("=")
        require(
            equals != "" and name in parameters,
            f"“{change}” is not a setting; write NAME=VALUE with one of {', '.join(parameters)}.",
        )
        values[name] = text.split(",") if parameters[name].many else text
    print(KINDS[given.kind](**values).to_json())


def _presets(given: argparse.Namespace) -> None:
    """List the presets, or print one as a settings file."""
    if given.name is None:
        for preset in PRESETS.values():
            print(f"{preset.name:<26} {preset.settings.kind:<12} {preset.point}")
        return
    require(
        given.name in PRESETS,
        f"There is no preset “{given.name}”; use one of {', '.join(PRESETS)}.",
    )
    print(PRESETS[given.name].settings.to_json())


def _data(given: argparse.Namespace) -> int:
    """List the public data sets (uses, licences, which are here), or fetch some from publishers.

    No other command opens a connection. A set that cannot be had does not stop the others.
    """
    folder, status = data_folder(given.to), 0
    if not given.names:
        _say(listing(folder))
    for one in [by_name(name) for name in given.names]:
        try:
            _say(f"{one.title}: {', '.join(map(str, provide(one, folder, given.given)))}")
        except InvalidInput as refusal:
            _say(str(refusal), sys.stderr)
            status = REFUSED
    return status


def _reproduce(given: argparse.Namespace) -> None:
    """Run a table or figure of a paper, free of the pages' limits; goes on where it was stopped."""
    if given.list or given.name is None:
        for entry in EXPERIMENTS.values():
            count = len(entries_of(entry.key))
            print(f"{entry.key:<24} {entry.source:<10} {count:>3} rows  {entry.title}")
            for one in entry.sizes:
                print(f"{'':<24} {one:<10} {entry.described(one)}")
        return
    chosen = experiment(given.name)
    size: Size = "paper" if given.paper_size else "live"
    commit()
    table = outcome(reproduce(chosen, size, given.seeds, given.out, given.only), _cell)
    _clear()
    assert table is not None
    medians = summary(table)
    if len(medians) <= PRINTED_ROWS:
        print(f"\nmedians over the seeds\n{medians.to_string(index=False)}")
    _say(f"Wrote {', '.join(write_results(table, chosen, size, given.out))} to {given.out}.")


def _cell(step: Step[Any]) -> bool:
    """Progress; a finished cell is a line of its own where nobody watches a terminal."""
    if not sys.stderr.isatty() and step.text.endswith(": done"):
        print(f"{step.fraction:4.0%}  {step.text}", file=sys.stderr, flush=True)
    return _report(step)


def _report(step: Step[Any]) -> bool:
    if sys.stderr.isatty():
        print(f"\r{step.fraction:4.0%}  {step.text:<50.50}", end="", file=sys.stderr, flush=True)
    return True


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
