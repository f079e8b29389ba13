"""Candidates: points that fill the space, and points near anchors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cube_cases import MIXED, is_legal
from optpair.cube.candidates import BOXES, SIDE, Screening, space_filling
from optpair.cube.cube import Cube
from optpair.cube.lattice import lattice
from optpair.cube.region import Region
from optpair.problem.linear import Rows
from optpair.runtime.streams import Stream

BOX = Cube.box(2)
SHIFTS = np.random.default_rng(0).uniform(size=(2, 2))


def test_space_filling_shifts() -> None:
    base = lattice(2, 64)
    first, second = (space_filling(shift, BOX, base) for shift in SHIFTS)
    np.testing.assert_allclose(first, (base + SHIFTS[0]) % 1, atol=1e-12)
    assert np.abs(first - second).max() > 0.01
    assert np.all((first >= 0) & (first < 1))


def test_points_near_anchors() -> None:
    anchors = np.array([[0.2, 0.8], [0.5, 0.0]])
    screening = Screening.of(Stream.of(0), BOX, 804, len(anchors))
    points, fill = screening.points(Region.whole(BOX), anchors)
    assert points.shape == (201, 2)
    assert fill.shape == (804, 2)
    np.testing.assert_array_equal(points[:2], anchors)
    assert np.all((points >= 0) & (points <= 1))
    moved = np.abs(points - anchors[np.arange(201) % 2]).max(1)[2:]
    # Step sizes are log-uniform on [10⁻³, 10⁻½] times a normal: a third lie below 10^-2.2 or so.
    assert np.median(moved) == np.clip(np.median(moved), 0.5 * 10**-1.75, 1.5 * 10**-1.75)
    assert np.quantile(moved, 0.1) < 5e-3
    assert np.quantile(moved, 0.9) > 0.08


def test_few_points_still_hold_all_anchors() -> None:
    anchors = np.random.default_rng(1).uniform(size=(8, 2))
    points, fill = Screening.of(Stream.of(0), BOX, 4).points(Region.whole(BOX), anchors)
    np.testing.assert_array_equal(points, anchors)
    assert len(fill) == 4


def test_a_seed_gives_the_same_points_and_another_does_not() -> None:
    anchors, region = np.array([[0.2, 0.8]]), Region.whole(BOX)
    one, two, other = (
        Screening.of(Stream.of(s), BOX, 64).points(region, anchors) for s in (5, 5, 6)
    )
    for a, b, c in zip(one, two, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.any(a != c)


def test_mixed_spaces_give_legal_points() -> None:
    anchors = MIXED.spread(np.random.default_rng(2).uniform(size=(3, 4)))
    for points in Screening.of(Stream.of(1), MIXED, 200).points(Region.whole(MIXED), anchors):
        assert is_legal(points)


def test_without_anchors_all_is_legal_too() -> None:
    nothing = np.zeros((0, 6))
    near, fill = Screening.of(Stream.of(1), MIXED, 200).points(Region.whole(MIXED), nothing)
    assert (len(near), len(fill)) == (50, 200)
    assert is_legal(near)
    np.testing.assert_array_equal(near[0], fill[0])


def test_a_region_holds_all_points() -> None:
    region = Region(BOX, np.array([0.3, 0.4]), np.array([0.3, 0.6]))
    for points in Screening.of(Stream.of(1), BOX, 200).points(region, np.array([[0.9, 0.5]])):
        np.testing.assert_array_equal(points[:, 0], 0.3)
        assert np.all((points[:, 1] >= 0.4) & (points[:, 1] <= 0.6))
        assert len(np.unique(points[:, 1])) > 3


def test_boxes_surround_the_first_anchors() -> None:
    cube = Cube.box(9)
    anchors = np.random.default_rng(3).uniform(size=(8, 9))
    screening = Screening.of(Stream.of(2), cube, 400, boxed=True)
    _, fill = screening.points(Region.whole(cube), anchors)
    for box in range(BOXES):
        low = np.clip(anchors[box] - SIDE / 2, 0, 1 - SIDE)
        own = fill[100 * box : 100 * (box + 1)]
        assert np.all((own >= low) & (own <= low + SIDE))
        np.testing.assert_allclose(own.mean(0), low + SIDE / 2, atol=2 * SIDE / 100)


def test_boxes_leave_categories_and_linear_limits_alone() -> None:
    anchors = MIXED.spread(np.full((1, 4), 0.05))
    for points in Screening.of(Stream.of(1), MIXED, 200, boxed=True).points(
        Region.whole(MIXED), anchors
    ):
        assert is_legal(points)
    assert np.all(points[:, 0] <= SIDE)
    assert len(np.unique(points[:, 3:], axis=0)) == 3
    box = Cube.box(3)
    rows = Rows(np.array([[1.0, 1.0, 0.0]]), np.array([1.0]), np.array([True]))
    region = replace(Region.whole(box), rows=rows)
    _, fill = Screening.of(Stream.of(1), box, 200, boxed=True).points(
        region, np.array([[0.1, 0.9, 0.1]])
    )
    np.testing.assert_allclose(fill[:, 0] + fill[:, 1], 1.0, atol=1e-12)
    assert np.ptp(fill[:, 0]) > 0.9
    assert np.ptp(fill[:, 2]) <= SIDE
