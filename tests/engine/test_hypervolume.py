"""Hypervolumes, against closed forms and Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest

from optpair.engine.hypervolume import hypervolume


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
