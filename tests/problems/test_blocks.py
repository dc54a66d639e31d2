"""Problems from a caller's own blocks: what is refused, and with which words."""

import numpy as np
import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.problems.problem import from_blocks

GOOD = np.random.default_rng(0).standard_normal((4, 20))


def spoilt(value):
    block = GOOD.copy()
    block[2, 3] = value
    return block


@pytest.mark.parametrize(
    ("blocks", "sentence"),
    [
        ([], "number of clients is 0"),
        ([GOOD], "number of clients is 1; .* at least two blocks"),
        ([GOOD, GOOD[:, :0]], r"Client 1 is empty \(0 samples\)"),
        ([GOOD, GOOD[:3]], "Client 1 has 3 features but client 0 has 4"),
        ([GOOD, spoilt(np.nan)], "block of client 1 holds 1 missing or infinite value;"),
        ([GOOD, spoilt(np.inf)], "block of client 1 holds 1 missing or infinite value;"),
        ([GOOD, np.full((4, 20), 3.0)], "block of client 1 is constant: all its 20 records"),
        ([np.zeros((4, 5)), GOOD], "block of client 0 is constant"),
        ([GOOD, GOOD.astype(str)], "block of client 1 has shape .* numeric"),
        ([GOOD, GOOD[0]], r"block of client 1 has shape \(20,\)"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(blocks, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        from_blocks(blocks)


def test_weights_state_the_target():
    uneven = [GOOD, GOOD[:, :5] * 2]
    moments = [block @ block.T / block.shape[1] for block in uneven]
    by_records = from_blocks(uneven).covariance
    np.testing.assert_allclose(by_records, 0.8 * moments[0] + 0.2 * moments[1])
    equal = from_blocks(uneven, weights="equal").covariance
    np.testing.assert_allclose(equal, 0.5 * moments[0] + 0.5 * moments[1])
    given = from_blocks(uneven, weights=[3, 1]).covariance
    np.testing.assert_allclose(given, 0.75 * moments[0] + 0.25 * moments[1])


def test_a_client_with_one_record_is_allowed():
    assert from_blocks([GOOD, GOOD[:, :1]]).clients == 2
