"""Streams of random numbers: what is drawn depends on the name alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optpair.runtime.streams import MOST_SEED_BITS, Stream, check_seed


def first(stream: Stream) -> float:
    return float(stream.draw().uniform())


@pytest.mark.parametrize("seed", [0, 7, 2**32, 2**64 - 1, 2**200, np.int64(7), np.uint64(7)])
def test_a_seed_is_a_plain_int(seed: int) -> None:
    number = check_seed(seed)
    assert type(number) is int
    assert number == seed
    assert Stream.of(number) == Stream.of(int(seed))


def test_seeds_give_different_streams() -> None:
    seeds = [0, 1, 2**32, 2**32 + 1, 2**64, 2**200]
    assert len({first(Stream.of(seed)) for seed in seeds}) == len(seeds)


def test_a_path_names_a_stream() -> None:
    root = Stream.of(3)
    assert first(root.child(1, 2)) == first(root.child(1).child(2)) == first(root.child(1, 2))
    paths: list[tuple[int, ...]] = [(), (0,), (1,), (0, 0), (1, 2), (2, 1), (12,), (2**40,)]
    assert len({first(root.child(*path)) for path in paths}) == len(paths)


def test_children_do_not_disturb_each_other() -> None:
    root = Stream.of(3)
    expected = root.child(1).draw().normal(size=5)
    rng = root.child(1).draw()
    root.draw().normal(size=100)
    root.child(2).draw().normal(size=100)
    np.testing.assert_array_equal(rng.normal(size=5), expected)


def test_streams_are_uncorrelated() -> None:
    """Neighbouring children, 200 of 500 numbers each: within 5 standard errors of zero."""
    draws = np.stack([Stream.of(0).child(i).draw().standard_normal(500) for i in range(200)])
    products = draws[1:] * draws[:-1]
    assert abs(products.mean()) < 5 / np.sqrt(products.size)
    assert abs(draws.mean()) < 5 / np.sqrt(draws.size)


def test_the_numbers_of_a_name_are_what_they_were() -> None:
    """Saved searches go on as they began: the same name gives the same numbers everywhere."""
    found = Stream.of(0).child(1, 2).draw().uniform(size=2)
    np.testing.assert_allclose(found, [0.6826006109771964, 0.9429698850093429], rtol=0, atol=1e-15)


@pytest.mark.parametrize("seed", ["1", 1.0, True, None, [1], np.float64(1)])
def test_seeds_are_ints(seed: Any) -> None:
    with pytest.raises(TypeError, match="seed must be a non-negative int"):
        check_seed(seed)


@pytest.mark.parametrize("seed", [-1, np.int64(-1), 2**5000, 2**50000], ids=range(4))
def test_seeds_have_a_range(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be "):
        check_seed(seed)
    assert check_seed(2**MOST_SEED_BITS - 1) > 0
