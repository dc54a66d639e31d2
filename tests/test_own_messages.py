"""Arrays of somebody's own pipeline: the same attacks, the same findings."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp

RECORDS = np.random.default_rng(0).integers(0, 17, (10, 40)).astype(float)
MATRIX = RECORDS.T @ RECORDS / 10
FRAME = np.linalg.qr(np.random.default_rng(1).standard_normal((40, 5)))[0]
FRAMES = [FRAME, np.linalg.qr(MATRIX @ FRAME)[0]]
PRODUCTS = [MATRIX @ one for one in FRAMES]
VALUES, VECTORS = (one[..., ::-1][..., :12] for one in np.linalg.eigh(MATRIX))
MEAN = np.rint(RECORDS.mean(axis=0) * 2**20) / 2**20
CENTRED = (RECORDS - MEAN).T @ (RECORDS - MEAN) / 10


def statuses(opened) -> dict[str, str]:
    return dict(zip(opened.findings["target"], opened.findings["status"], strict=True))


@pytest.mark.parametrize(
    ("received", "sent", "facts"),
    [
        (PRODUCTS, FRAMES, {}),
        ([10 * one for one in PRODUCTS], FRAMES, {"summed": True}),
        ([MATRIX], None, {"kind": "matrix"}),
        ([VECTORS], None, {"kind": "eigenvectors"}),
        ([VECTORS * np.sqrt(np.maximum(VALUES, 0))], None, {"kind": "scaled eigenvectors"}),
        ([CENTRED], None, {"kind": "matrix", "mean": MEAN}),
    ],
)
def test_records_come_out_of_every_kind_of_message(received, sent, facts):
    opened = fp.attack_arrays(received, sent, samples=10, grid=1, **facts)
    assert statuses(opened)["records"] == "open"
    assert sorted(map(tuple, opened.records)) == sorted(map(tuple, RECORDS))
    target = CENTRED if "mean" in facts else MATRIX
    np.testing.assert_allclose(opened.matrix, target, atol=1e-6)


def test_a_mean_of_its_own_leaves_differences():
    opened = fp.attack_arrays([CENTRED], kind="matrix", samples=10, grid=1, centring="own")
    assert statuses(opened)["records"] == "open" and opened.records is None


def test_without_a_grid_records_are_not_sought():
    opened = fp.attack_arrays([MATRIX], kind="matrix", samples=10)
    assert statuses(opened) == {
        "covariance": "open",
        "leading space": "open",
        "records": "proved closed",
    }


def test_noise_keeps_the_records():
    noise = np.random.default_rng(2).normal(size=(40, 40))
    opened = fp.attack_arrays([MATRIX + noise], kind="matrix", samples=10, grid=1, noise=0.02)
    assert statuses(opened)["records"] == "not opened" and opened.records is None


@pytest.mark.parametrize(
    ("received", "sent", "facts", "words"),
    [
        ([], None, {}, "No message"),
        ([MATRIX], None, {"kind": "hints"}, "not “hints”"),
        (PRODUCTS, None, {}, "give in sent"),
        (PRODUCTS, [FRAME], {}, "give in sent"),
        ([MATRIX], [MATRIX], {"kind": "matrix"}, "leave sent out"),
        ([MATRIX[:5]], None, {"kind": "matrix"}, "square, not 5 × 40"),
        ([MATRIX, MATRIX[:5, :5]], None, {"kind": "matrix"}, "same features"),
        ([MATRIX * np.nan], None, {"kind": "matrix"}, "NaN"),
        ([MATRIX], None, {"kind": "matrix", "samples": 0}, "at least 1"),
        ([MATRIX], None, {"kind": "matrix", "grid": 0.0}, "positive"),
        ([MATRIX], None, {"kind": "matrix", "grid": 1, "mean": MEAN[:3]}, "40 numbers"),
        ([MATRIX], None, {"kind": "matrix", "centring": "announced"}, "give the mean"),
        ([MATRIX], None, {"kind": "matrix", "dtype": "float16"}, "not 'float16'"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(received, sent, facts, words):
    with pytest.raises(fp.InvalidInput, match=words):
        fp.attack_arrays(received, sent, **{"samples": 10, **facts})
