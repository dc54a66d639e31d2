"""The bounded memory: made once, forgotten in order."""

from functools import partial

from fedpca_core.remembered import Remembered, forget_everything


def test_results_are_made_once_and_the_oldest_is_forgotten():
    made = []

    def make(key):
        made.append(key)
        return key * 10

    memory: Remembered[int] = Remembered(2)
    assert [memory.get(key, partial(make, key)) for key in (1, 2, 1)] == [10, 20, 10]
    assert made == [1, 2]
    memory.get(3, lambda: make(3))
    assert len(memory) == 2
    memory.get(1, lambda: make(1))
    assert made == [1, 2, 3, 1]


def test_a_result_of_zero_is_remembered():
    memory: Remembered[int] = Remembered(2)
    assert memory.get("key", lambda: 0) == 0
    assert memory.get("key", lambda: 1) == 0


def test_everything_is_forgotten_at_once_and_made_anew():
    first: Remembered[int] = Remembered(2)
    second: Remembered[int] = Remembered(2)
    first.get("a", lambda: 1)
    second.get("b", lambda: 2)
    assert forget_everything()
    assert len(first) == len(second) == 0
    assert not forget_everything()
    assert first.get("a", lambda: 3) == 3
