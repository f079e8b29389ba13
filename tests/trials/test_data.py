"""Trials as arrays: signs, missing outcomes, and what hyperparameters are inferred from."""

from __future__ import annotations

import numpy as np
import pytest

from optpair.engine.settings import Settings
from optpair.problem.outcomes import Objective
from optpair.problem.problem import Problem
from optpair.trials.data import Data, Measured, thinned
from optpair.trials.history import History
from shell_cases import SPACE, point

MOST_ROWS = Settings().most_rows
THREE = Problem(
    SPACE, {"loss": Objective("minimize"), "gain": Objective("maximize"), "size": Objective()}
)


@pytest.fixture
def history() -> History:
    made = History(THREE)
    made.add(point(0))
    made.tell(point(1), {"loss": 1.0, "gain": 2.0, "size": 3.0}, noise_var={"gain": 0.5})
    made.tell(point(2), failed=True)
    made.tell(point(3), {"gain": 4.0})
    made.tell(point(4), {"size": 0.0, "loss": -5.0}, noise_var={"loss": 0.0})
    made.cancel(made.add(point(5)))
    return made


def test_everything_is_to_be_maximised_and_nan_is_what_was_not_measured(history: History) -> None:
    data, nan = history.data(), np.nan
    np.testing.assert_array_equal(data.Y, [[-1, 2, -3], [nan, 4, nan], [5, nan, 0]])
    np.testing.assert_array_equal(
        data.noise_var, [[nan, 0.5, nan], [nan, nan, nan], [0.0, nan, nan]]
    )
    assert (data.told, data.outcomes) == (3, 3)


def test_noise_that_is_known_of_all_trials_gives_way_to_a_trials_own() -> None:
    outcomes = {"loss": Objective(noise=0), "gain": Objective("maximize", 3.0), "size": Objective()}
    history = History(Problem(SPACE, outcomes))
    history.tell(point(0), {"loss": 1.0, "gain": 2.0, "size": 3.0})
    history.tell(point(1), {"loss": 1.0, "gain": 2.0}, noise_var={"loss": 0.5, "gain": 0.0})
    np.testing.assert_array_equal(
        history.data().noise_var, [[0.0, 9.0, np.nan], [0.5, 0.0, np.nan]]
    )
    assert history[0].outcomes["gain"].noise_var is None  # nobody has said it of this trial


def test_values_are_exact_where_none_has_noise_and_none_contradicts_another() -> None:
    X, y, trusted = np.array([[0.1], [0.2], [0.2]]), np.array([1.0, 2.0, 2.0]), np.zeros(3, bool)
    assert Measured(X, y, np.zeros(3), trusted, np.arange(3)).exact
    assert not Measured(X, y, np.array([0.0, np.nan, 0.0]), trusted, np.arange(3)).exact
    assert not Measured(X, y, np.array([0.0, 0.0, 1e-9]), trusted, np.arange(3)).exact
    assert not Measured(X, np.array([1.0, 2.0, 2.1]), np.zeros(3), trusted, np.arange(3)).exact
    assert not Measured(X[:0], y[:0], y[:0], trusted[:0], np.arange(0)).exact


def test_rows_are_the_points_of_the_trials(history: History) -> None:
    data = history.data()
    np.testing.assert_array_equal(data.X, [SPACE.encode(point(i)) for i in (1, 3, 4)])
    np.testing.assert_array_equal(data.pending, [SPACE.encode(point(0))])
    np.testing.assert_array_equal(data.failed, [SPACE.encode(point(2))])


def test_an_outcome_has_the_rows_that_were_measured(history: History) -> None:
    data = history.data()
    loss, gain, size = (data.outcome(column) for column in range(3))
    assert [part.y.tolist() for part in (loss, gain, size)] == [[-1, 5], [2, 4], [-3, 0]]
    np.testing.assert_array_equal(loss.X, data.X[[0, 2]])
    np.testing.assert_array_equal(gain.X, data.X[[0, 1]])
    np.testing.assert_array_equal(loss.noise_var, [np.nan, 0.0])
    np.testing.assert_array_equal(gain.noise_var, [0.5, np.nan])


def test_the_beginning_has_nothing_pending_or_failed(history: History) -> None:
    whole = history.data()
    first = whole.first(2)
    np.testing.assert_array_equal(first.Y, whole.Y[:2])
    np.testing.assert_array_equal(first.X, whole.X[:2])
    np.testing.assert_array_equal(first.noise_var, whole.noise_var[:2])
    assert (len(first.pending), len(first.failed)) == (0, 0)
    assert whole.told == 3


def test_every_replicate_is_a_row_of_its_point(history: History) -> None:
    history.tell(point(6), {"gain": [1.0, 3.0, 5.0], "loss": [2.0, 4.0]}, noise_var={"gain": 0.1})
    history.tell(point(7), {"size": 1.0})
    data, nan = history.data(), np.nan
    assert (data.told, len(data.X)) == (5, 7)
    assert data.trial.tolist() == [0, 1, 2, 3, 3, 3, 4]
    np.testing.assert_array_equal(data.X[3:6], [SPACE.encode(point(6))] * 3)
    np.testing.assert_array_equal(data.Y[3:6], [[-2, 1, nan], [-4, 3, nan], [nan, 5, nan]])
    np.testing.assert_array_equal(data.noise_var[3:6, 1], [0.1] * 3)
    np.testing.assert_array_equal(data.means(0), [-1, nan, 5, -3, nan])
    np.testing.assert_array_equal(data.means(1), [2, 4, nan, 3, nan])
    slip = data.doubting(1, np.array([False, False, False, False, True]))
    np.testing.assert_array_equal(slip.means(1), [2, 4, nan, 2, nan])
    assert (data.first(4).told, len(data.first(4).X)) == (4, 6)


def test_nothing_at_all_has_shapes_too() -> None:
    data = Data.of(THREE, [], {})
    D = SPACE.layout.dimensions
    shapes = [data.X.shape, data.Y.shape, data.noise_var.shape, data.pending.shape]
    assert [*shapes, data.failed.shape] == [(0, D), (0, 3), (0, 3), (0, D), (0, D)]


def measured(n: int) -> Measured:
    X = np.linspace(0, 1, n)[:, None]
    noise_var = np.where(X[:, 0] < 0.5, np.nan, X[:, 0])
    return Measured(X, X[:, 0], noise_var, X[:, 0] > 0.9, np.arange(len(X)))


@pytest.mark.parametrize("n", [1, MOST_ROWS, MOST_ROWS + 1, 2000])
def test_hyperparameters_are_inferred_from_a_part_of_many(n: int) -> None:
    whole = measured(n)
    part = thinned(whole, MOST_ROWS)
    if n <= MOST_ROWS:
        np.testing.assert_array_equal(part.y, whole.y)
    else:
        assert len(part.y) == MOST_ROWS
        assert set(part.y) <= set(whole.y)
        # By lot: the mean of so many uniform numbers, within four standard errors.
        assert abs(part.y.mean() - 0.5) < 4 * np.sqrt(1 / 12 / MOST_ROWS)
    np.testing.assert_array_equal(part.X[:, 0], part.y)
    np.testing.assert_array_equal(part.noise_var, np.where(part.y < 0.5, np.nan, part.y))


def test_the_part_stays_from_one_trial_to_the_next() -> None:
    """A new row takes the place of at most one, wherever it comes in."""
    every, new = measured(700), 600
    order = np.random.default_rng(0).permutation(700)

    def part(rows: np.ndarray) -> Measured:
        return thinned(Measured(*(column[np.sort(rows)] for column in every)), MOST_ROWS)

    before, changes = part(order[:new]), 0
    for k in range(new, 700):
        after = part(order[: k + 1])
        gone, come = set(before.y) - set(after.y), set(after.y) - set(before.y)
        assert len(gone) == len(come) <= 1
        assert come <= {every.y[order[k]]}
        before, changes = after, changes + len(come)
    # Each new row is among the lowest with chance 256/k: about 39 of a hundred, sd below 5.
    assert 20 < changes < 60
