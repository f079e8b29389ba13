"""What every acquisition function has to do for each goal of several outcomes that it serves."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cases import HYPERS, STEP, D, M, N, P, X, changed, chosen, condition, source

from optpair.acquisition import REGISTRY, Acquisition, Context, Entry, check_goal
from optpair.acquisition.registry import GOALS
from optpair.cube.cube import Cube
from optpair.gp import Posterior, sample_paths
from optpair.optima import Optima, Wanted
from optpair.runtime.streams import Stream

RNG = source()
Y = RNG.normal(size=(4, N))
INF = np.inf
LOW, HIGH = np.array([-INF, -0.2, -INF, -0.5]), np.array([INF, INF, 0.4, 0.8])
CASES = {  # goal, columns of the objectives and all columns
    "constraint": ("feasible", (0,), (0, 1)),
    "band": ("feasible", (0,), (0, 3, 1)),
    "two": ("front", (0, 1), (0, 1)),
    "two and one": ("front", (0, 1), (0, 2, 1)),
    "three": ("front", (0, 1, 2), (0, 1, 2)),
}
R = 5
PLACES = RNG.uniform(size=(M, P, R, D))
VALUES = RNG.normal(0.8, 0.6, size=(M, P, R, 4))
MASK = RNG.uniform(size=(M, P, R)) < 0.8
MASK[0, 0] = False  # a path without a feasible point
RANDOM = RNG.uniform(size=(8, D))
CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
POINTS = np.concatenate([RANDOM, X, PLACES[0, 1], CORNERS])
DRAWN = {"nei", "lognei", "lognehvi"}
DRAWS = DRAWN | {"ts", "parego"}

pytestmark = pytest.mark.parametrize(
    ("name", "case"),
    [
        (name, case)
        for name, entry in REGISTRY.items()
        for case, (goal, _, _) in CASES.items()
        if goal in entry.goals
    ],
)


def wanted_of(case: str, unit: float = 1.0, shift: float = 0.0) -> Wanted:
    _, objectives, columns = CASES[case]
    count, own = len(columns), list(columns)
    low, high = LOW[own].copy(), HIGH[own].copy()
    places = tuple(i for i in range(count) if i < len(objectives) - (case == "two and one"))
    if case == "two and one":
        places = (0, 2)
    low[list(places)], high[list(places)] = -INF, INF
    return Wanted(places, unit * (low + shift), unit * (high + shift))


@cache
def context(
    case: str,
    unit: float = 1.0,
    shift: float = 0.0,
    order: tuple[int, ...] = (0, 1, 2),
    noisy: bool = True,
    seed: int = 0,
) -> Context:
    """All outcomes as unit·(y + shift), and the sets in that order."""
    index, some = list(order), chosen(list(order))
    hypers = changed(
        some,
        outputscale=unit**2 * some.outputscale,
        noise=unit**2 * some.noise * noisy,
        mean=unit * (some.mean + shift),
    )
    _, objectives, columns = CASES[case]
    model = tuple(condition(hypers, X, unit * (Y[c] + shift)) for c in columns)
    wanted = wanted_of(case, unit, shift)
    points = R if len(objectives) > 1 else 1
    f = VALUES[index][:, :, :points][..., list(columns)]
    limits = wanted_of(case)
    f = unit * (np.clip(f, limits.low, limits.high) + shift)
    stars = Optima(
        PLACES[index][:, :, :points], f, MASK[index][:, :, :points], np.zeros((len(index), P))
    )
    paths = tuple(sample_paths(post, P, 1 + o, features=64) for o, post in enumerate(model))
    return Context(model, Cube.box(D), RANDOM, Stream.of(seed), paths, stars, wanted)


def built(name: str, case: str, **changes: object) -> Acquisition:
    return REGISTRY[name].build(context(case, **changes))


@pytest.mark.parametrize("noisy", [True, False])
def test_values_and_slopes_are_finite_everywhere(name: str, case: str, noisy: bool) -> None:
    alpha = built(name, case, noisy=noisy)
    values, slopes = alpha.slopes(POINTS)
    assert values.dtype == slopes.dtype == np.float64
    assert values.shape == (len(POINTS),)
    assert slopes.shape == POINTS.shape
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(slopes))
    assert np.std(values) > 0
    if REGISTRY[name].scale in ("gain", "improvement"):
        assert np.min(values) >= 0
    rtol = 1e-6 if name in DRAWN else 1e-9
    np.testing.assert_allclose(alpha(POINTS), values, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(alpha(POINTS[3:4]), values[3:4], rtol=rtol, atol=1e-12)
    assert alpha(np.zeros((0, D))).shape == (0,)
    assert alpha.dimensions == D
    assert np.all(np.isfinite(alpha.rough(POINTS)))


def pending(case: str) -> Context:
    """One pending point, with a fantasy for each path."""
    plain = context(case)
    rng = np.random.default_rng(7)

    def grown(posterior: Posterior) -> Posterior:
        return posterior.append(np.array([0.4, 0.6]), rng.normal(size=(M, P)))

    return replace(plain, model=tuple(grown(posterior) for posterior in plain.model))


@pytest.mark.parametrize("fantasies", [False, True])
def test_slopes_are_those_of_the_values(name: str, case: str, fantasies: bool) -> None:
    given = pending(case) if fantasies else context(case)
    alpha = REGISTRY[name].build(given)
    values, slopes = alpha.slopes(RANDOM)
    ends = [(alpha(RANDOM + e), alpha(RANDOM - e)) for e in STEP * np.eye(D)]
    numeric = np.array([(up - down) / (2 * STEP) for up, down in ends]).T
    size = np.max(np.abs(slopes))
    assert size > 1e-4
    np.testing.assert_allclose(slopes, numeric, rtol=2e-5, atol=2e-6 * size)
    if fantasies and name != "ts":
        assert np.max(np.abs(values - built(name, case)(RANDOM))) > 1e-4


@pytest.mark.parametrize(("unit", "shift"), [(50.0, -3.0)])
def test_units_do_not_change_the_choice(name: str, case: str, unit: float, shift: float) -> None:
    """All outcomes in other units: gains stay, improvements are of as many units as objectives."""
    plain, moved = built(name, case)(POINTS), built(name, case, unit=unit, shift=shift)(POINTS)
    assert np.argmax(plain) == np.argmax(moved)
    count = len(CASES[case][1])
    scale = "gain" if name == "parego" or (name == "ts" and count > 1) else REGISTRY[name].scale
    expected = {
        "gain": plain,
        "improvement": unit**count * plain,
        "log improvement": plain + count * np.log(unit),
        "worth": unit * (plain + shift),
    }[scale]
    size = unit**count if scale in ("improvement", "worth") else 1.0
    np.testing.assert_allclose(moved / size, expected / size, rtol=1e-5, atol=1e-6)


def test_the_order_of_sets_does_not_matter(name: str, case: str) -> None:
    if name == "ts":
        pytest.skip("one set is drawn, by its place in the order")
    turned = built(name, case, order=(2, 0, 1))(POINTS)
    np.testing.assert_allclose(turned, built(name, case)(POINTS), rtol=1e-6)


def test_draws_come_from_the_stream_alone(name: str, case: str) -> None:
    fresh = replace(context(case), stream=Stream.of(0))
    first, again = (REGISTRY[name].build(fresh)(RANDOM) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    others = [REGISTRY[name].build(replace(fresh, stream=Stream.of(s)))(RANDOM) for s in (1, 2, 3)]
    assert (np.max(np.abs(first - np.array(others))) > 0) == (name in DRAWS)


def test_it_has_what_it_says_it_needs(name: str, case: str) -> None:
    entry, given = REGISTRY[name], context(case)
    for need in ("paths", "optima"):
        less = replace(given, **{need: None})
        if need in entry.needs:
            with pytest.raises(ValueError, match=r"needs (sample paths|optima)"):
                entry.build(less)
        else:
            np.testing.assert_array_equal(entry.build(less)(RANDOM), entry.build(given)(RANDOM))


def test_a_goal_that_is_not_served_is_refused(name: str, case: str) -> None:
    entry = REGISTRY[name]
    for goal in GOALS:
        if goal in entry.goals:
            check_goal(entry, goal)
        else:
            with pytest.raises(ValueError, match=rf"{name}.*use one of .*jes"):
                check_goal(entry, goal)
    with pytest.raises(ValueError, match="goals must be among"):
        Entry(entry.build, "nothing", goals=frozenset({"fame"}))
    assert HYPERS.sets == M
