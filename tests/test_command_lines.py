"""Command lines that nobody means well by: a sentence each, and nothing that steers a terminal."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fedpca_core import __main__ as command
from fedpca_core.papers.registry import EXPERIMENTS
from fedpca_core.questions.catalogue import KINDS, PRESETS
from fedpca_core.settings import said
from tests.mutants import SEED

#: What stands in a settings file instead of a value.
WRONG: tuple[Any, ...] = (
    *(None, True, [], [[]], [["ssi"]], [None], {}, {"a": {}}, "", "\x00", "\x1b[31m", "∞", "nan"),
    *(-1, 0.5, 10**30, 10**400, float("nan"), float("inf"), "9" * 5000, "a" * 5000, "\u202e"),
)
#: What stands on a command line instead of a name, a number or a path.
WORDS = (
    *("", "-1", "nan", "\x00", "\x1b[2J", "\x1b]0;title\x07", "../..", "/", "/proc/self/mem"),
    *("∞", "\u202eabc", "a" * 5000, "9" * 5000, "[]", "--", "-", "null", "\ud800", "\r"),
)


def spoiled(drawn: random.Random) -> str:
    """A settings file with something wrong in it."""
    content = json.loads(drawn.choice(list(PRESETS.values())).settings.to_json())
    for _ in range(drawn.randint(1, 3)):
        content[drawn.choice([*content, "x\x1b[31m"])] = drawn.choice(WRONG)
    text = json.dumps(content)
    match drawn.randrange(10):
        case 0:
            return text[: drawn.randrange(len(text))]
        case 1:
            return text.replace("{", "[" * 100_000, 1)
        case 2:
            return text.replace(": ", ": " + "7" * 5000, 1)
        case 3:
            return drawn.choice(('{"kind": "converge", "problem": []}', "[]", "null", '"a"', ""))
    return text


def command_lines(seed: int, count: int, folder: Path) -> Iterator[list[str]]:
    """Arguments of commands, each with something wrong in it."""
    drawn = random.Random(seed)
    file = folder / "mine.json"
    for _ in range(count):
        word, other = drawn.choice(WORDS), drawn.choice(WORDS)
        if drawn.random() < 0.9:
            file.write_text(spoiled(drawn))
        else:
            file.write_bytes(drawn.randbytes(50))
        name = drawn.choice([str(file), word])
        kind, paper = drawn.choice([*KINDS, word]), drawn.choice([*EXPERIMENTS, word])
        setting = drawn.choice(list(KINDS["converge"].parameters()))
        yield drawn.choice(
            [
                ["run", str(file)],
                ["run", name, "--table", word],
                ["run", name, "--out", word],
                ["check", str(file)],
                ["check", name, "--out", other],
                ["config", kind, f"{setting}={word}", f"{other}={word}"],
                ["config", "converge", f"{setting}={word}"],
                ["presets", word],
                ["reproduce", paper, "--seeds", drawn.choice(["0", word])],
                ["reproduce", paper, "--only", word, "--out", str(folder)],
                ["data", "iris", "--from", word, "--to", str(folder)],
                ["data", word],
                [word, other],
            ]
        )


def status(arguments: list[str]) -> int:
    """How a command ends."""
    try:
        return command.main(arguments)
    except SystemExit as ended:  # of the parser
        return int(ended.code or 0)


def test_two_hundred_command_lines_end_in_a_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "studies_of", lambda settings: [])  # nothing is computed
    monkeypatch.chdir(tmp_path)
    ended = []
    for arguments in command_lines(seed=SEED, count=240, folder=tmp_path):
        ended.append(status(arguments))
        told = capsys.readouterr()
        assert ended[-1] in (0, command.REFUSED), (arguments, told.err)
        shown = (told.out + told.err).replace("\n", "")
        assert not any(sign in shown for sign in "\x1b\x00\x07\r\u202e"), arguments
        assert ended[-1] == 0 or told.err.strip(), arguments
        assert len(told.err) < 6000
    assert ended.count(command.REFUSED) > 150


def test_a_wrong_value_is_named_by_its_key(tmp_path, capsys):
    file = tmp_path / "mine.json"
    for value in ([], {}, None, [["ssi"]], 10**4200):
        file.write_text(json.dumps({"kind": "converge", "version": 2, "problem": value}))
        assert status(["run", str(file)]) == command.REFUSED
        assert "“problem”: Problem cannot be " in capsys.readouterr().err
    file.write_text('{"kind": "converge", "seed": ' + "7" * 5000 + "}")
    assert status(["run", str(file)]) == command.REFUSED
    assert "too many digits" in capsys.readouterr().err
    file.write_text("[" * 100_000)
    assert status(["run", str(file)]) == command.REFUSED
    assert "nested too deeply" in capsys.readouterr().err


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null", "/dev/full"])
def test_a_device_is_not_read_until_the_memory_is_full(device, tmp_path, capsys):
    link = tmp_path / "mine.json"
    link.symlink_to(device)
    assert status(["run", str(link)]) == command.REFUSED
    assert "cannot be read (it is a device)" in capsys.readouterr().err
    file = tmp_path / "settings.json"
    file.write_text(KINDS["converge"](problem="table").to_json())
    assert status(["run", str(file), "--table", str(link)]) == command.REFUSED
    assert "cannot be read (it is a device)" in capsys.readouterr().err


def test_settings_come_through_a_pipe(capsys, monkeypatch):
    """As a shell's <(…) hands them over."""
    monkeypatch.setattr(command, "studies_of", lambda settings: [])
    ours, theirs = os.pipe()
    os.write(theirs, KINDS["converge"]().to_json().encode())
    os.close(theirs)
    assert status(["run", f"/dev/fd/{ours}"]) == 0
    os.close(ours)


@pytest.mark.parametrize("out", ["a" * 300, "b/" * 2000, "file", "loop/x", "/dev/null/x"])
def test_a_folder_that_cannot_be_is_said(out, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "studies_of", lambda settings: [])
    monkeypatch.chdir(tmp_path)
    Path("file").write_text(KINDS["check"]().to_json())
    Path("loop").symlink_to("loop")
    assert status(["run", "file", "--out", out]) == command.REFUSED
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("version", [0, -1, True, 2.0, "2", 10**400, None, []])
def test_a_version_is_a_whole_number_that_was_there(version, tmp_path, capsys):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"kind": "converge", "version": version}))
    assert status(["run", str(file)]) == command.REFUSED
    assert "This configuration has version" in capsys.readouterr().err


def test_a_fault_of_ours_is_one_sentence_with_its_place(tmp_path, capsys, monkeypatch):
    def fails(_settings: object) -> list[Any]:
        raise KeyError("\x1b[31m")

    monkeypatch.setattr(command, "studies_of", fails)
    file = tmp_path / "mine.json"
    file.write_text(KINDS["converge"]().to_json())
    assert status(["run", str(file)]) == command.FAULT
    told = capsys.readouterr().err
    assert "fault of the program (KeyError" in told and "test_command_lines.py, line" in told
    assert "Traceback" not in told and "\x1b" not in told
    monkeypatch.setenv("FEDPCA_DEBUG", "1")
    with pytest.raises(KeyError):
        command.main(["run", str(file)])


def test_a_value_in_a_sentence_is_short():
    for value in WRONG:
        assert 0 <= len(said(value)) <= 60
