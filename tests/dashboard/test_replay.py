"""The replay view's data: what is packed is what is unpacked, and misfits are refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dashboard.player.component import FRONTEND, SCRIPTS, frontend_script
from dashboard.player.encode import encode
from fedpca_core.errors import InvalidInput
from fedpca_core.study.panels import Baseline, Curve, Heat, Images, Panel, to_uint8

TYPES = {"f4": "<f4", "f8": "<f8", "u1": "u1"}


def decode(payload: bytes) -> tuple[dict, bytes]:
    """An independent reading of the format that encode.py describes."""
    length = int.from_bytes(payload[:4], "little")
    header = json.loads(payload[4 : 4 + length])
    start = -(-(4 + length) // 8) * 8
    return header, payload[start:]


def array(reference: dict, body: bytes) -> np.ndarray:
    offset, count, kind = reference["block"]
    return np.frombuffer(body, TYPES[kind], count, offset)


def line(name: str = "SSI", points: int = 4, **options) -> Curve:
    k = np.arange(points)
    return Curve(name, k, 10.0 ** -k.astype(float), **options)


def panel(*curves: Curve, key: str = "error", **options) -> Panel:
    return Panel(key, "Error", "round", "error", curves or (line(),), **options)


def test_numbers_survive_the_way_to_the_browser():
    x = [0, 1_000_000_000, 2_000_000_000, 3_000_000_000]
    y = [1.0, 1e-20, None, 1e-300]
    payload = encode(key="v", rounds=3, panels=[panel(Curve("SSI", x, y, lower=y, upper=y))])
    header, body = decode(payload)
    curve = header["panels"][0]["curves"][0]
    np.testing.assert_allclose(array(curve["x"], body), x, rtol=1e-7)
    got = array(curve["y"], body)
    assert np.isnan(got[2]), "None must become a gap"
    np.testing.assert_allclose(got[[0, 1, 3]], [1.0, 1e-20, 1e-300], rtol=1e-7)
    assert curve["lower"] == curve["y"] == curve["upper"], "equal numbers are stored once"


def test_blocks_are_aligned_and_inside_the_payload():
    frames = np.arange(4 * 3 * 5, dtype=np.uint8).reshape(4, 3, 5)
    payload = encode(
        key="vü",  # more bytes than letters
        rounds=3,
        panels=[panel(line(), line("FAPS"), Curve("text", ["a"], [1.0], guide=True))],
        images=[[Images("One", frames), Images("Two", frames[:1])]],
    )
    header, body = decode(payload)
    assert len(payload) % 8 == 0
    pictures = header["images"][0]
    np.testing.assert_array_equal(array(pictures[0]["frames"], body), frames.ravel())
    np.testing.assert_array_equal(array(pictures[1]["frames"], body), frames[0].ravel())
    for curve in header["panels"][0]["curves"]:
        for part in ("x", "y"):
            if isinstance(curve[part], dict):
                assert curve[part]["block"][0] % 8 == 0
    assert header["panels"][0]["curves"][2]["x"] == ["a"]


def test_float32_is_used_only_where_it_can_hold_the_numbers():
    kinds = []
    for top in (1.0, 1e-44, 1e300):
        header, _ = decode(encode(key="v", rounds=0, panels=[panel(Curve("SSI", [0], [top]))]))
        kinds.append(header["panels"][0]["curves"][0]["y"]["block"][2])
    assert kinds == ["f4", "f8", "f8"]


def test_the_digest_tells_data_apart_and_nothing_else():
    def digest(value: float, title: str = "Error") -> str:
        one = Panel("p", title, "round", "error", (Curve("SSI", [0.0], [value]),))
        return decode(encode(key="v", rounds=0, panels=[one]))[0]["digest"]

    assert digest(0.5) == digest(0.5)
    assert len({digest(0.5), digest(0.25), digest(0.5, "Other")}) == 3


def test_algorithms_keep_their_colour_and_others_get_free_ones():
    header, _ = decode(
        encode(key="v", rounds=3, panels=[panel(line("client 1"), line("FAPS"), line("client 2"))])
    )
    colours = {curve["name"]: curve["colour"] for curve in header["panels"][0]["curves"]}
    assert colours["FAPS"] == {"light": "#0f766e", "dark": "#2dd4bf"}
    assert len({colour["light"] for colour in colours.values()}) == 3


def test_to_uint8_hits_the_ends_and_the_middle():
    got = to_uint8([-np.inf, -3, -2, 0, 2, 3, np.inf], low=-2, high=2)
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, [0, 0, 0, 128, 255, 255, 255])


def test_to_uint8_is_within_half_a_step_of_the_value():
    values = np.random.default_rng(3).uniform(-1, 4, size=(5, 7, 2))
    back = -1 + to_uint8(values, -1, 4).astype(float) * 5 / 255
    assert np.abs(back - values).max() <= 0.5 * 5 / 255 + 1e-12


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Curve("SSI", [0, 1], [1.0]), "x has 2 points and y has 1"),
        (lambda: Curve("SSI", [0], ["a"]), "must be numbers"),
        (lambda: Curve("SSI", [0], [1.0], lower=[1.0]), "give both lower and upper"),
        (lambda: Curve("SSI", [0], [1.0], lower=[1.0, 2], upper=[1.0, 2]), "one value per point"),
        (lambda: Curve("SSI", [0], [1.0], labels=["a", "b"]), "2 labels for 1 points"),
        (lambda: panel(line(), line()), "'SSI' is used twice"),
        (lambda: panel(kind="pie"), "'pie' is unknown"),
        (lambda: Panel("p", "t", "x", "y", ()), "no curve"),
        (lambda: panel(y_range=(0.0, 1.0)), "cannot be drawn on a log axis"),
        (lambda: panel(x_range=(1.0, 1.0)), "is empty"),
        (lambda: panel(baselines=(Baseline("zero", 0.0),)), "'zero' is at 0.0"),
        (lambda: panel(log_y=False, baselines=(Baseline("n", np.nan),)), "'n' is at nan"),
        (lambda: Heat("h", "t", [[1.0, 2.0]], ["a"], ["b"]), "1 by 2"),
        (lambda: Heat("h", "t", [[[1.0]]], ["a"], ["b"], show_values=True), "follow the round"),
        (lambda: Images("A", np.zeros((1, 2, 2))), "to_uint8"),  # type: ignore[arg-type]
        (lambda: Images("A", np.zeros((2, 2), np.uint8)), "shape (2, 2)"),
        (lambda: Images("A", np.zeros((1, 2, 2), np.uint8), 1, 1), "low must be below high"),
        (lambda: to_uint8([1.0, np.nan], 0, 1), "1 of 2 image values"),
        (lambda: to_uint8([1.0], 1, 0), "from 1 to 0"),
    ],
)
def test_misfits_are_refused_in_a_sentence(make, words):
    with pytest.raises(InvalidInput) as refusal:
        make()
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rounds": 2, "panels": [panel()]}, "4 points for 2 rounds; give at most 3"),
        ({"rounds": -1, "panels": [panel()]}, "-1 rounds"),
        ({"rounds": 3, "panels": [panel()], "start": 4}, "from 0 to 3"),
        ({"rounds": 3, "panels": [panel(), panel()]}, "'error' is used twice"),
        ({"rounds": 3}, "neither a panel nor an image"),
        (
            {"rounds": 3, "panels": [panel(Curve("SSI", [0, 1], np.ones((2, 2))))]},
            "2 rows of y for 3 rounds",
        ),
        ({"rounds": 3, "images": [[Images("A", np.zeros((2, 1, 1), np.uint8))]]}, "2 frames"),
        (
            {
                "rounds": 3,
                "images": [[Images("A", np.zeros((1, 1, 1), np.uint8), captions=["a", "b"])]],
            },
            "2 captions for 3 rounds",
        ),
        (
            {"rounds": 3, "panels": [Heat("h", "t", np.zeros((2, 1, 1)), ["a"], ["b"])]},
            "2 matrices for 3 rounds",
        ),
        (
            {"rounds": 3, "panels": [panel(line(colour="mauve"))]},
            "no colour called 'mauve'",
        ),
    ],
)
def test_views_that_do_not_fit_their_rounds_are_refused(arguments, words):
    with pytest.raises(InvalidInput) as refusal:
        encode(key="view", **arguments)
    assert words in str(refusal.value)


def test_a_guide_may_be_longer_than_the_run():
    encode(key="v", rounds=3, panels=[panel(line(), line("bound", points=50, guide=True))])


def test_every_script_of_the_frontend_is_part_of_the_module():
    # A poster adds one of its own, which stands beside the module.
    assert {path.name for path in Path(FRONTEND).glob("*.js")} == {*SCRIPTS, "poster.js"}
    assert frontend_script().count("export default") == 1
