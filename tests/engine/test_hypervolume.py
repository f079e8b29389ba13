"""Hypervolumes, against closed forms and Monte Carlo."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from optpair.engine.hypervolume import hypervolume, most_of


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_against_monte_carlo(objectives: int) -> None:
    """20000 points: four standard errors are at most 0.0142."""
    rng = np.random.default_rng(objectives)
    front = rng.uniform(size=(9, objectives))
    points = rng.uniform(size=(20000, objectives))
    inside = np.any(np.all(points[:, None] <= front, -1), 1)
    assert hypervolume(front, np.zeros(objectives)) == pytest.approx(np.mean(inside), abs=0.0142)


def test_a_box_and_its_limits() -> None:
    box, corner = np.array([[2.0, 3.0, 4.0]]), np.array([1.0, 1.0, 1.0])
    assert hypervolume(box, corner) == pytest.approx(6.0)  # (W3)
    assert hypervolume(box[:0], corner) == 0.0
    assert hypervolume(box, np.array([2.0, 0.0, 0.0])) == 0.0  # no volume above the reference
    assert hypervolume(np.array([[1.0], [4.0]]), np.zeros(1)) == 4.0


@pytest.mark.parametrize("objectives", [2, 3])
def test_invariances(objectives: int) -> None:
    rng = np.random.default_rng(0)
    front, corner = rng.uniform(1, 2, (8, objectives)), np.full(objectives, 0.5)
    volume = hypervolume(front, corner)
    assert hypervolume(front[::-1], corner) == pytest.approx(volume)
    assert hypervolume(front[:, ::-1], corner) == pytest.approx(volume)
    assert hypervolume(np.concatenate([front, front]), corner) == pytest.approx(volume)
    dominated = front - 0.1
    assert hypervolume(np.concatenate([front, dominated]), corner) == pytest.approx(volume)
    assert hypervolume(3 * front + 1, 3 * corner + 1) == pytest.approx(3**objectives * volume)
    assert hypervolume(front + 0.1, corner) > volume


def curved(rng: np.random.Generator, rows: int, objectives: int) -> np.ndarray:
    """A front: points of a sphere, pulled in or out."""
    values = np.abs(rng.standard_normal((rows, objectives)))
    power = rng.uniform(0.7, 3)
    return np.asarray(values / np.sum(values**power, 1, keepdims=True) ** (1 / power))


@pytest.mark.parametrize("seed", range(6))
def test_few_points_of_two_objectives_against_all_choices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    front, corner = curved(rng, 10, 2), rng.uniform(-0.3, 0.4, 2)
    ends = set(front.argmax(0).tolist())
    for count in (2, 3, 5, 9):
        rows = most_of(front, corner, count)
        volumes = [
            hypervolume(front[list(some)], corner)
            for some in combinations(range(10), count)
            if ends <= set(some)
        ]
        assert len(rows) == count
        assert ends <= set(rows.tolist())
        assert hypervolume(front[rows], corner) == pytest.approx(max(volumes), rel=1e-12)  # (W4)


def test_few_points_of_a_straight_front_are_equally_far_apart() -> None:
    share = np.linspace(0, 1, 101)
    values = np.column_stack([share, 50 - 50 * share])
    rows = most_of(values, np.array([-0.1, -5.0]), 5)
    assert rows.tolist() == [0, 25, 50, 75, 100]
    lost = 25 * np.sum(np.diff(share[rows]) ** 2)  # the triangles between neighbours
    assert hypervolume(values[rows], np.zeros(2)) == pytest.approx(25 - lost)


@pytest.mark.parametrize("objectives", [3, 4])
def test_few_points_of_more_objectives_against_exact_additions(objectives: int) -> None:
    """Of 8192 points of the lattice, 0.5 % of the box may be miscounted."""
    rng = np.random.default_rng(objectives)
    front, corner = curved(rng, 24, objectives), np.full(objectives, -0.1)
    slow = list(dict.fromkeys(front.argmax(0).tolist()))
    while len(slow) < 8:
        rest = [row for row in range(24) if row not in slow]
        slow.append(max(rest, key=lambda row: hypervolume(front[[*slow, row]], corner)))
    rows = most_of(front, corner, 8)
    assert set(front.argmax(0).tolist()) <= set(rows.tolist())
    assert len(set(rows.tolist())) == 8
    found, wanted = (hypervolume(front[own], corner) for own in (rows, slow))
    assert found > wanted - 0.005 * np.prod(front.max(0) - corner)
    assert found > hypervolume(front[:8], corner)


@pytest.mark.parametrize("objectives", [2, 3])
def test_choices_at_their_limits(objectives: int) -> None:
    rng = np.random.default_rng(1)
    front, corner = curved(rng, 9, objectives), np.zeros(objectives)
    assert most_of(front, corner, 9).tolist() == np.argsort(front[:, 0]).tolist()
    assert most_of(front[:0], corner, 4).tolist() == []
    (one,) = most_of(front, corner, 1)  # alone, the largest box counts
    assert np.prod(front[one]) == pytest.approx(np.prod(front, axis=1).max(), rel=0.02)
    rows = most_of(front, corner, 5)
    assert np.all(np.diff(front[rows, 0]) > 0)
    huge = most_of(1e308 * front, np.full(objectives, -1.7e308), 5)
    assert len(set(huge.tolist())) == 5
    np.testing.assert_array_equal(most_of(3 * front + 1, 3 * corner + 1, 5), rows)
    assert len(set(most_of(front, corner + 9, 5).tolist())) == 5  # nothing is above the reference
    turned = most_of(front[:, ::-1], corner, 5)
    assert objectives > 2 or set(turned) == set(rows)
