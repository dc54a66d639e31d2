"""The table of docs/protocol.md is what every attack of today makes of the protocol of today."""

import re

import pytest

from bench import bench_protocol as bench
from fedpca_core.attacks.registry import ATTACKS
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.study import WAYS
from tests.papers.coverage import DOCS

TABLE = re.search(
    r"^### Every attack of the registry.*?^\|---.*?\n(.*?)\n\n",
    (DOCS / "protocol.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL,
)  # fmt: skip
assert TABLE is not None
ROWS = {cells[0]: cells[1:] for line in TABLE[1].splitlines()
        for cells in [[cell.strip() for cell in line.strip("|").split("|")]]}  # fmt: skip


def test_every_attack_has_its_row():
    assert list(ROWS) == [attack.title for attack in ATTACKS.values()]


@pytest.mark.parametrize("column", range(len(bench.FEDERATIONS)))
def test_a_row_says_what_the_attack_comes_to(column):
    settings = bench.FEDERATIONS[column]
    clean, seed = build.records(settings, None), bench.SEEDS[0]
    way = WAYS["shared_source"].trial(settings, clean, seed, None)
    found = bench.once(way, clean, settings.components, seed)
    for key, attack in ATTACKS.items():
        assert bench.alone(key, found) in ROWS[attack.title][column].split("; "), attack.title
