"""Budgets: how much work a step gets."""

from __future__ import annotations

import numpy as np

from optpair.engine.budget import climb_steps, paths_screened, screened, set_stride
from optpair.engine.settings import Settings
from optpair.gp.inference import Marginal
from shell_cases import jes, point

MOST_ROWS = Settings().most_rows


def test_climbs_are_longer_in_more_dimensions() -> None:
    assert [climb_steps(Settings(), d) for d in (1, 2, 4, 5, 20)] == [10, 14, 22, 24, 24]
    assert climb_steps(Settings(steps=7), 12) == 7


def test_paths_are_screened_at_fewer_points_in_a_plane() -> None:
    assert [paths_screened(Settings(), d) for d in (1, 2, 3, 12)] == [256, 256, 768, 768]
    assert paths_screened(Settings(path_candidates=64), 12) == 64


def test_optima_are_candidates_too() -> None:
    assert [screened(Settings(), optima=optima) for optima in (True, False)] == [128, 2048]
    assert screened(Settings(candidates=5), optima=False) == 5


def test_chains_move_more_often_while_trials_are_few() -> None:
    moves = [Marginal(12, None)._moves(n) for n in (0, 1, 32, 50, 100, 192, 256)]
    assert moves == [12, 12, 8, 5, 2, 2, 2]
    assert Marginal(12, 5)._moves(1) == 5
    assert Marginal(1, None)._moves(256) == 1


def test_fewer_sets_where_data_are_many() -> None:
    rows = (32, 256, 320, 512, 1024, 4096)
    assert [12 // set_stride(n, 12, MOST_ROWS) for n in rows] == [12, 12, 6, 6, 3, 3]
    assert set_stride(4096, 3, MOST_ROWS) == set_stride(4096, 1, MOST_ROWS) == 1


def test_asks_with_fewer_sets_have_as_many_pairs() -> None:
    """A limit that 40 observations exceed."""
    optimizer = jes(seed=1, sets=6, most_rows=32)
    rng = np.random.default_rng(0)
    for i in range(40):
        optimizer.tell(point(i), float(rng.normal()))
    assert optimizer.ask().params["c"] in "ab"
    assert len(optimizer._session.memory["value"].state.position) == 6
    assert optimizer.model().objective.posterior.sets == 3
    assert len(optimizer.belief().values) == 6 * 2
