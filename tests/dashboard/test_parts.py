"""What a question's figures say is made once for all who look at the same result."""

from dataclasses import replace

from dashboard.shell import parts
from fedpca_core.study.pca_settings import ConvergeSettings


def test_figures_are_made_once_for_a_result_and_settings(monkeypatch) -> None:
    made: list[tuple[list[int], ConvergeSettings]] = []
    shown: list[str] = []

    def figures(found, settings):
        made.append((found, settings))
        yield f"{found} with {settings.rounds}"

    monkeypatch.setattr(parts, "_FIGURES", parts.Remembered(2))
    monkeypatch.setattr(parts, "lay_out", shown.extend)
    first, second, one = [1], [1], ConvergeSettings()
    other = replace(one, rounds=20)
    for found, settings in ((first, one), (first, one), (second, one), (first, other)):
        parts.drawing(figures, settings)(found)
    assert shown == ["[1] with 75", "[1] with 75", "[1] with 75", "[1] with 20"]
    assert [(id(found), settings) for found, settings in made] == [
        (id(first), one),
        (id(second), one),
        (id(first), other),
    ]
    parts.drawing(figures, one)(first)  # forgotten: two are kept
    assert len(made) == 4
