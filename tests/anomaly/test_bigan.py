"""FedBiGAN: how large it is, what it says without PyTorch, and with PyTorch that it learns."""

import sys

import numpy as np
import pytest

from fedpca_core.anomaly import autoencoder
from fedpca_core.anomaly.autoencoder import BiGAN, forward, split
from fedpca_core.errors import InvalidInput
from fedpca_core.papers.registry import EXPERIMENTS
from fedpca_core.problems import traffic


def done(running):
    while True:
        try:
            next(running)
        except StopIteration as ended:
            return ended.value


@pytest.fixture(scope="module")
def detection():
    return traffic.prepare(traffic.synthetic(), clients=20, split="iid")


def test_its_encoder_and_generator_are_the_autoencoder_s_halves():
    for hidden in (autoencoder.FEDAE, autoencoder.FEDAE_2):
        halves = BiGAN(39, hidden).stacks
        assert (*halves[0], *halves[1][1:]) == autoencoder.Network(39, hidden).stacks[0]
        assert halves[2][0] == 39 + halves[0][-1] and halves[2][-1] == 1


def test_without_pytorch_a_sentence_says_what_to_install(detection, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InvalidInput, match=r"PyTorch, which is not installed.*pip install"):
        done(autoencoder.training(detection.problem, BiGAN(24), rounds=1))
    experiment = EXPERIMENTS["iot-readings-ton"]
    assert {"FedBiGAN", "FedBiGAN-2"} <= {cell.series for cell in experiment.cells("paper", 1)}


@pytest.mark.parametrize("plain", [False, True])
def test_a_first_step_goes_against_every_slope(plain):
    """Adam's is the rate times the sign of the slope, a plain one the rate times that of the mean
    of both kinds of records; slopes here, of their sum, by differences in float64."""
    pytest.importorskip("torch", reason="PyTorch is optional: pip install '.[networks]'")
    made, rate = np.random.default_rng(0), 1e-1 if plain else 1e-3
    network = BiGAN(6, (5, 3, 5), rate=rate, plain=plain)
    start = made.normal(0.0, 0.5, network.parameters).astype(np.float32).astype(float)
    records = made.standard_normal((60, 6)).astype(np.float32)
    rows = np.arange(60).reshape(2, 1, 30)
    stepped, _ = network.descend(start, records, rows, np.random.default_rng(1))
    codes = np.random.default_rng(1).standard_normal((2, 30, 3), dtype=np.float32)
    ends = np.cumsum([autoencoder.parameters(stack) for stack in network.stacks])

    def loss(flat, client, judges):
        parts = np.split(flat[None], ends[:2], axis=1)
        encode, generate, judge = (
            lambda batch, i=i: forward(split(network.stacks[i], parts[i]), batch)[-1]
            for i in range(3)
        )
        real, code = records[rows[client]].astype(float), codes[client][None].astype(float)
        seen = judge(np.concatenate([real, encode(real)], axis=2))
        fake = judge(np.concatenate([generate(code), code], axis=2))
        sign = 1.0 if judges else -1.0
        return float(np.logaddexp(0, -sign * seen).mean() + np.logaddexp(0, sign * fake).mean())

    for client in range(2):
        for index in range(0, network.parameters, 3):
            shift = np.zeros_like(start)
            shift[index] = 1e-6
            ahead, behind = (loss(start + s * shift, client, index >= ends[1]) for s in (1.0, -1.0))
            slope = (ahead - behind) / 2e-6
            if abs(slope) > 1e-4:
                moved = (stepped[client] - start)[index]
                step = slope / 2 if plain else np.sign(slope)
                assert moved == pytest.approx(-rate * step, rel=1e-2), index


def test_the_same_seed_gives_the_same(detection):
    pytest.importorskip("torch", reason="PyTorch is optional: pip install '.[networks]'")
    one, same = (
        done(autoencoder.training(detection.problem, BiGAN(24), rounds=2)) for _ in range(2)
    )
    np.testing.assert_array_equal(one.weights, same.weights)
    assert one.bytes_up == 2 * 2 * 4 * BiGAN(24).parameters
