"""Headless runs: ``python -m fedpca_core run CONFIG.json``.

Commands
--------
``run CONFIG.json [--out FOLDER] [--table FILE.csv [--client-column NAME]]``
    Run what a configuration file describes (saved by the dashboard's download button or by
    ``config``) and print the table of costs; with ``--out`` also write curves and summary as CSV.
``config [NAME=VALUE ...]``
    Print a configuration file with some settings changed, e.g. ``config features=60 starts=5``.
``presets``
    List the presets, one a line; ``presets NAME`` prints one as a configuration file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pandas as pd
from threadpoolctl import threadpool_limits

from fedpca_core.errors import InvalidInput
from fedpca_core.problems import Problem
from fedpca_core.problems.csv_file import read_csv
from fedpca_core.problems.table import from_table
from fedpca_core.settings import Settings
from fedpca_core.studies import personalised as personalise
from fedpca_core.studies import theory
from fedpca_core.studies.detection.settings import AnomalyConfiguration
from fedpca_core.studies.laboratory import build_problem, compare
from fedpca_core.studies.papers import faps
from fedpca_core.studies.pca import AttackConfiguration, Configuration
from fedpca_core.studies.personalised import PersonaliseConfiguration
from fedpca_core.studies.theory import TheoryConfiguration

S = TypeVar("S", bound=Settings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (2 for input that does not fit)."""
    parser = argparse.ArgumentParser(prog="python -m fedpca_core", description="Headless runs.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a configuration file")
    run.add_argument("file", type=Path)
    run.add_argument("--out", type=Path, help="folder for curves.csv and summary.csv")
    run.add_argument("--table", type=Path, help="CSV file for the problem kind 'table'")
    run.add_argument("--client-column", help="column of the CSV file that names the client")
    config = commands.add_parser("config", help="print a configuration file")
    config.add_argument("changes", nargs="*", metavar="NAME=VALUE")
    presets = commands.add_parser("presets", help="list the presets, or print one")
    presets.add_argument("name", nargs="?")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "run":
            _run(chosen.file, chosen.out, chosen.table, chosen.client_column)
        elif chosen.command == "config":
            print(_changed(chosen.changes).to_json())
        else:
            _presets(chosen.name)
    except InvalidInput as refusal:
        print(refusal, file=sys.stderr)
        return 2
    return 0


def _run(file: Path, out: Path | None, table: Path | None, client_column: str | None) -> None:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"The configuration file {file} cannot be read ({error}); give a JSON file."
        ) from None
    if f'"kind": "{PersonaliseConfiguration.kind}"' in text:
        personal = _read(PersonaliseConfiguration, text)
        return _print_tables(personalise.tables(personal, _report), out)
    if f'"kind": "{TheoryConfiguration.kind}"' in text:
        return _print_tables(theory.tables(_read(TheoryConfiguration, text), _report), out)
    if f'"kind": "{AnomalyConfiguration.kind}"' in text:
        from fedpca_core.studies.detection.comparison import (
            tables,  # scikit-learn is slow to import
        )

        return _print_tables(tables(_read(AnomalyConfiguration, text), _report, table), out)
    kind = AttackConfiguration if f'"kind": "{AttackConfiguration.kind}"' in text else Configuration
    configuration: Configuration = _read(kind, text)
    own: Problem | None = None
    if table is not None:
        own = from_table(
            read_csv(table),
            client_column=client_column,
            clients=configuration.clients,
            heterogeneity=None if client_column else configuration.heterogeneity,
            seed=configuration.seed,
        )
        configuration = replace(configuration, problem="table")

    with threadpool_limits(limits=1):
        comparison = compare(configuration, build_problem(configuration, own), _report)
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    for refusal in comparison.refusals.values():
        print(refusal, file=sys.stderr)
    summary = comparison.summary(configuration.measure, configuration.accuracy)
    print(f"{comparison.name}: {configuration.measure} <= {configuration.accuracy:g}")
    print(summary.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        comparison.curves().to_csv(out / "curves.csv", index=False)
        summary.to_csv(out / "summary.csv", index=False)
        print(f"Wrote {out / 'curves.csv'} and {out / 'summary.csv'}.")


def _read(kind: type[S], text: str) -> S:
    """Read a configuration of one kind, its notes on the error stream."""
    reading = kind.from_json(text)
    for note in reading.notes:
        print(note, file=sys.stderr)
    configuration: S = reading.configuration
    return configuration


def _report(fraction: float, text: str) -> bool:
    if sys.stderr.isatty():
        print(f"\r{fraction:4.0%}  {text:<50}", end="", file=sys.stderr, flush=True)
    return True


def _print_tables(tables: Mapping[str, pd.DataFrame], out: Path | None) -> None:
    """Print all tables but the curves; with a folder, write every one of them."""
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    for name, table in tables.items():
        if name != "curves":
            print(table.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            table.to_csv(out / f"{name}.csv", index=False)
    if out is not None:
        print(f"Wrote {', '.join(f'{name}.csv' for name in tables)} to {out}.")


def _changed(changes: Sequence[str]) -> Configuration:
    values: dict[str, object] = {}
    for change in changes:
        name, equals, text = change.partition("=")
        parameters = Configuration.parameters()
        if not equals or name not in parameters:
            known = ", ".join(parameters)
            raise InvalidInput(
                f"“{change}” is not a setting; write NAME=VALUE with one of {known}."
            )
        values[name] = text.split(",") if parameters[name].many else text
    return Configuration(**values)  # type: ignore[arg-type]


def _presets(name: str | None) -> None:
    if name is not None:
        print(faps.preset(name).configuration().to_json())
        return
    for preset in faps.PRESETS:
        print(f"{preset.name:<22} {preset.point}")


if __name__ == "__main__":
    sys.exit(main())
