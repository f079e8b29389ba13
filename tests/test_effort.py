"""How much work a step gets, and what is spared where there are many observations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from optpair.effort import (
    chain_moves,
    climb_steps,
    padded_size,
    paths_screened,
    set_stride,
    size_ahead,
    thinned,
)
from optpair.history import Observations
from optpair.settings import Settings

from shell_cases import jes, point

MOST_ROWS = Settings().most_rows


def test_padded_sizes_are_few_and_close() -> None:
    few, many = (sorted({padded_size(n, d) for n in range(1, 2049)}) for d in (8, 9))
    assert few[:4] == [64, 128, 160, 192]
    assert few[-1] == 2048
    assert len(few) == 18
    assert many == few[1:]
    for n in range(1, 2049):
        assert n <= padded_size(n, 8) < max(1.25 * n + 64, 65)


def test_the_next_size_is_begun_in_time() -> None:
    sizes = [size_ahead(n, 7, 6) for n in range(200)]
    assert [n for n in range(1, 200) if sizes[n] > sizes[n - 1]] == [17, 113, 145, 177]
    assert set(sizes) == {64, 128, 160, 192, 224}
    assert size_ahead(0, 100, 6) == 128


def test_climbs_are_longer_in_more_dimensions() -> None:
    assert [climb_steps(Settings(), d) for d in (1, 2, 4, 5, 20)] == [10, 14, 22, 24, 24]
    assert climb_steps(Settings(steps=7), 12) == 7


def test_paths_are_screened_at_fewer_points_in_a_plane() -> None:
    assert [paths_screened(Settings(), d) for d in (1, 2, 3, 12)] == [512, 512, 1024, 1024]
    assert paths_screened(Settings(path_candidates=64), 12) == 64


def test_chains_move_more_often_while_trials_are_few() -> None:
    assert [chain_moves(Settings(), n) for n in (0, 1, 32, 50, 100, 192, 256)] == [
        12,
        12,
        12,
        7,
        3,
        2,
        2,
    ]
    assert chain_moves(Settings(moves=5), 1) == 5
    assert chain_moves(Settings(sets=1), 256) == 1


def observations(n: int) -> Observations:
    X = np.linspace(0, 1, n)[:, None]
    return Observations(X, X[:, 0], np.full(n, np.nan), np.zeros((2, 1)), np.zeros((3, 1)))


@pytest.mark.parametrize("n", [1, MOST_ROWS, MOST_ROWS + 1, 2000])
def test_hyperparameters_are_inferred_from_a_part_of_many(n: int) -> None:
    whole = observations(n)
    part = thinned(whole, MOST_ROWS)
    if n <= MOST_ROWS:
        np.testing.assert_array_equal(part.y, whole.y)
    else:
        assert len(part.y) == MOST_ROWS
        assert set(part.y) <= set(whole.y)
        # By lot: the mean of so many uniform numbers, within four standard errors.
        assert abs(part.y.mean() - 0.5) < 4 * np.sqrt(1 / 12 / MOST_ROWS)
    np.testing.assert_array_equal(part.X[:, 0], part.y)
    assert len(part.pending) == len(part.failed) == 0


def test_the_part_stays_from_one_trial_to_the_next() -> None:
    """A new observation takes the place of at most one, wherever it comes in."""
    every, new = observations(1200), 600
    order = np.random.default_rng(0).permutation(1200)
    before = thinned(part_of(every, np.sort(order[:new])), MOST_ROWS)
    for k in range(new, 1200):
        after = thinned(part_of(every, np.sort(order[: k + 1])), MOST_ROWS)
        gone, come = set(before.y) - set(after.y), set(after.y) - set(before.y)
        assert len(gone) == len(come) <= 1
        assert come <= {every.y[order[k]]}
        before = after


def part_of(every: Observations, rows: np.ndarray) -> Observations:
    return replace(every, X=every.X[rows], y=every.y[rows], noise_var=every.noise_var[rows])


def test_fewer_sets_where_data_are_many() -> None:
    assert [12 // set_stride(rows, 12, MOST_ROWS) for rows in (32, 256, 320, 512, 1024, 4096)] == [
        12,
        12,
        6,
        6,
        3,
        3,
    ]
    assert set_stride(4096, 3, MOST_ROWS) == set_stride(4096, 1, MOST_ROWS) == 1


def test_asks_with_fewer_sets_have_as_many_pairs() -> None:
    """A study with a limit that 40 observations exceed."""
    optimizer = jes(seed=1, sets=6, most_rows=32)
    rng = np.random.default_rng(0)
    for i in range(40):
        optimizer.tell(point(i), float(rng.normal()))
    assert optimizer.ask().params["c"] in "ab"
    assert optimizer._state.theta is not None
    assert len(optimizer._state.theta) == 6
    assert len(optimizer.belief().values) == 6 * 2
