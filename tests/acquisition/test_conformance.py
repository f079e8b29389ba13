"""What every acquisition function of the registry has to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cases import HYPERS, STEP, D, M, N, P, X, Y, changed, chosen, condition, source

from optpair.acquisition import (
    CONTROLS,
    REGISTRY,
    Acquisition,
    Context,
    ei,
    fitbo,
    gibbon,
    ids,
    jes,
    jes_peak,
    kg,
    logei,
    mean,
    mes,
    mes_noisy,
    mf_kg,
    mf_mes,
    names,
    nei,
    opes,
    pes,
    pi,
    rmes,
    ucb,
)
from optpair.acquisition.es import ES
from optpair.acquisition.mes import MAXIMA, _above_data, _by_gumbel
from optpair.acquisition.ts import TS
from optpair.acquisition.ucb import schedule
from optpair.cube.cube import Cube
from optpair.gp import Posterior, sample_paths
from optpair.optima import Optima
from optpair.runtime.streams import Stream

RNG = source()
STARS = Optima.pairs(RNG.uniform(size=(M, P, D)), Y.max() + RNG.uniform(0.1, 2.0, (M, P)))
RANDOM = RNG.uniform(size=(20, D))
CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
POINTS = np.concatenate([RANDOM, X, STARS.star[0], CORNERS])

ONE_SET = {"ts", "aegis"}  # whose coin is for a path, with the seed of these tests
DRAWN = {"nei", "lognei"}  # whose draws at the data are others where there are more data
SUMS = {"jes-exact", "rmes", "mes-noisy", "fitbo", "es"}  # of many terms, which leave round-off
NOISE = 0.2
OTHERS = np.random.default_rng(8).uniform(0.01, 0.99, (20, D))  # not those that are screened

SERVING = [name for name, entry in REGISTRY.items() if "best" in entry.goals]
pytestmark = pytest.mark.parametrize("name", SERVING)


@cache
def built(
    name: str,
    unit: float = 1.0,
    shift: float = 0.0,
    order: tuple[int, ...] = (0, 1, 2),
    noisy: bool = True,
) -> Acquisition:
    """The function of that name on y = unit·(Y + shift), with its sets in that order."""
    index = list(order)
    some = chosen(index)
    hypers = changed(
        some,
        outputscale=unit**2 * some.outputscale,
        noise=unit**2 * some.noise * noisy,
        mean=unit * (some.mean + shift),
    )
    posterior = condition(hypers, X, unit * (Y + shift))
    stars = Optima.pairs(STARS.star[index], unit * (STARS.best[index] + shift))
    return REGISTRY[name].build(context_of(posterior, stars))


def context_of(posterior: Posterior, optima: Optima = STARS, seed: int = 0) -> Context:
    """From a fixed seed: the same draws every time, whatever the units are."""
    paths = sample_paths(posterior, P, 1, features=64)
    return Context((posterior,), Cube.box(D), RANDOM, Stream.of(seed), (paths,), optima)


def by_function(name: str, c: Context) -> Acquisition:
    """What the public functions make of the same."""
    posterior, uniform = c.posterior, Stream.of(0).draw().uniform(size=MAXIMA)
    made: dict[str, Callable[[], Acquisition]] = {
        "jes": lambda: jes(posterior, STARS),
        "jes-exact": lambda: jes(posterior, STARS, exact=True),
        "jes-peak": lambda: jes_peak(posterior, STARS),
        "mes": lambda: mes(posterior, _by_gumbel(posterior, c.points, uniform).f),
        "mes-paths": lambda: mes(posterior, _above_data(posterior, STARS.best)),
        "gibbon": lambda: gibbon(posterior, STARS),
        "rmes": lambda: rmes(posterior, STARS),
        "mes-noisy": lambda: mes_noisy(posterior, STARS),
        "opes": lambda: opes(posterior, STARS),
        "fitbo": lambda: fitbo(posterior, STARS),
        "ids": lambda: ids(posterior, STARS),
        "pes": lambda: pes(posterior, STARS),
        "ei": lambda: ei(posterior),
        "logei": lambda: logei(posterior),
        "nei": lambda: nei(posterior),
        "lognei": lambda: nei(posterior, log=True),
        "pi": lambda: pi(posterior),
        "ucb": lambda: ucb(posterior),
        "kg": lambda: kg(posterior, STARS, c.points),
        "mf-mes": lambda: mf_mes(posterior, STARS, {}),
        "mf-kg": lambda: mf_kg(posterior, STARS, {}, c.points),
        "mean": lambda: mean(posterior),
    }
    return made[name]()


def test_a_name_is_its_function(name: str) -> None:
    found = built(name)
    alone = {"es": ES, "ts": TS, "aegis": TS}  # whose numbers are drawn in another way
    if name in alone:
        assert type(found) is alone[name]
        return
    wanted = by_function(name, context_of(condition(HYPERS, X, Y)))
    np.testing.assert_allclose(found(RANDOM), wanted(RANDOM), rtol=1e-9)


def test_values_are_numpy_float64_of_the_points_shape(name: str) -> None:
    alpha = built(name)
    values, slopes = alpha.slopes(POINTS)
    assert values.dtype == slopes.dtype == alpha(POINTS).dtype == np.float64
    assert alpha(POINTS).shape == values.shape == (len(POINTS),)
    assert slopes.shape == POINTS.shape
    assert isinstance(alpha([[0.5, 0.5]]), np.ndarray)
    assert alpha.dimensions == D
    assert np.std(values) > 0


def test_no_points_have_no_values(name: str) -> None:
    assert built(name)(np.zeros((0, D))).shape == (0,)


@pytest.mark.parametrize("noisy", [True, False])
def test_values_and_slopes_are_finite_everywhere(name: str, noisy: bool) -> None:
    """At random points, at data, at pairs, in corners; with noise and without."""
    alpha = built(name, noisy=noisy)
    values, slopes = alpha.slopes(POINTS)
    assert np.all(np.isfinite(alpha(POINTS)))
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(slopes))
    assert np.all(np.abs(slopes[: len(RANDOM)]).max(1) > 0)


def test_values_of_slopes_are_the_values(name: str) -> None:
    alpha = built(name)
    # What is left of a variance at the data has fewer digits, and noisy EI divides by it.
    rtol = 1e-7 if name in DRAWN else 1e-9
    np.testing.assert_allclose(alpha.slopes(POINTS)[0], alpha.values(POINTS), rtol=rtol, atol=1e-14)


def test_rows_do_not_depend_on_their_block(name: str) -> None:
    """One point at a time, and many of them in several blocks."""
    alpha = built(name)
    rtol = 1e-7 if name in DRAWN else 1e-9
    together, slopes = alpha.slopes(POINTS)
    for i in (0, 7, 21, 30, len(POINTS) - 1):
        one = alpha.slopes(POINTS[i : i + 1])
        np.testing.assert_allclose(one[0], together[i : i + 1], rtol=rtol, atol=1e-14)
        if i < len(RANDOM):
            np.testing.assert_allclose(one[1][0], slopes[i], rtol=1e-7, atol=1e-10)
    many = np.tile(POINTS, (20, 1))[:613]
    np.testing.assert_allclose(alpha(many)[-36:], alpha(many[-36:]), rtol=rtol, atol=1e-14)


def test_what_building_tells_of_the_points_is_its_value_there(name: str) -> None:
    alpha = built(name)
    assert (alpha.screened is not None) == (name == "mes")
    if alpha.screened is not None:
        np.testing.assert_allclose(alpha.screened, alpha(RANDOM), rtol=1e-9)


@pytest.mark.parametrize(("unit", "shift"), [(1.0, 100.0), (1e-3, 0.0), (50.0, -3.0)])
def test_units_of_y_do_not_change_the_choice(name: str, unit: float, shift: float) -> None:
    """How the values themselves change is what the registry says that they are."""
    plain, moved = built(name)(POINTS), built(name, unit, shift)(POINTS)
    assert np.argmax(plain) == np.argmax(moved)
    scale = REGISTRY[name].scale
    expected = {
        "gain": plain,
        "improvement": unit * plain,
        "log improvement": plain + np.log(unit),
        "worth": unit * (plain + shift),
    }[scale]
    size = unit if scale in ("improvement", "worth") else 1.0
    np.testing.assert_allclose(moved / size, expected / size, rtol=1e-6, atol=1e-7)


def test_gains_and_improvements_are_not_negative(name: str) -> None:
    """With noise and without, at data and pairs too; a worth or a logarithm can be."""
    signs = [built(name, noisy=noisy)(POINTS) for noisy in (True, False)]
    if REGISTRY[name].scale in ("gain", "improvement"):
        assert np.min(signs) >= (-1e-14 if name in SUMS else 0.0)
    else:
        assert np.min(signs) < 0


def test_the_order_of_sets_does_not_matter(name: str) -> None:
    if name in ONE_SET:
        pytest.skip("one set is drawn, by its place in the order")
    rtol = 1e-8 if name in DRAWN else 1e-10
    np.testing.assert_allclose(built(name, order=(2, 0, 1))(POINTS), built(name)(POINTS), rtol=rtol)


def test_several_sets_are_the_mean_over_sets(name: str) -> None:
    """One at a time. What is drawn by its place, or looks at all sets first, does not split."""
    if name in ONE_SET or name in ("es", "kg", "ids", "fitbo"):
        pytest.skip("what it draws or looks at depends on all sets")
    each, got = np.array([built(name, order=(m,))(RANDOM) for m in range(M)]), built(name)(RANDOM)
    if REGISTRY[name].scale == "log improvement":
        each, got = np.exp(each), np.exp(got)
    np.testing.assert_allclose(got, each.mean(0), rtol=1e-8)
    assert np.max(np.std(each, 0)) > 1e-3


def test_sets_do_matter(name: str) -> None:
    """A set counted twice changes the average; a set that is drawn decides everything."""
    if name in ONE_SET:
        seen = [built(name, order=(m, m, m))(POINTS) for m in range(M)]
        assert sum(np.allclose(built(name)(POINTS), values) for values in seen) == 1
        return
    assert np.max(np.abs(built(name, order=(0, 0, 1))(POINTS) - built(name)(POINTS))) > 1e-3


def crowded(X: np.ndarray, y: np.ndarray, noise_var: np.ndarray, seed: int = 0) -> Context:
    """RBF, known noise of some, one pending with a fantasy per path; one σ² for all sets."""
    told = condition(changed(noise=np.full(M, NOISE)), X, y, "rbf", noise_var)
    values = np.random.default_rng(7).normal(size=(M, P))
    grown = told.append(np.array([0.4, 0.6]), values)
    return replace(context_of(told, seed=seed), model=(grown,))


def test_slopes_are_those_of_the_values(name: str) -> None:
    """By central differences, in the crowded case; nor is any gain or improvement negative."""
    known = np.full(N, np.nan)
    known[[1, 4]] = 0.5, 1e-4
    alpha = REGISTRY[name].build(crowded(X, Y, known))
    values, slopes = alpha.slopes(OTHERS)
    assert np.all(np.isfinite(values))
    if REGISTRY[name].scale in ("gain", "improvement"):
        assert np.min(values) >= (-1e-14 if name in SUMS else 0.0)
    ends = [(alpha(OTHERS + e), alpha(OTHERS - e)) for e in STEP * np.eye(D)]
    numeric = np.array([(up - down) / (2 * STEP) for up, down in ends]).T
    size = np.max(np.abs(slopes))
    assert size > 1e-3
    np.testing.assert_allclose(slopes, numeric, rtol=1e-5, atol=1e-6 * size)


def test_two_looks_are_one_with_half_the_noise(name: str) -> None:
    """Two values of noise σ² at one point say what their mean with `noise_var` σ²/2 says."""
    if name == "fitbo":
        pytest.skip("it looks at √(f* − y), which is not linear in y")
    i = int(np.argmin(Y))
    points, unknown = np.concatenate([X[i : i + 1], OTHERS]), np.full(N + 1, np.nan)
    known = np.where(np.arange(N) == i, NOISE / 2, np.nan)
    apart = np.append(Y, Y[i] - 0.3)
    apart[i] = Y[i] + 0.3
    twice = crowded(np.concatenate([X, X[i : i + 1]]), apart, unknown)
    once, ignored = crowded(X, Y, known), crowded(X, Y, unknown[:N])

    def values(context: Context, seed: int = 0) -> np.ndarray:
        given = replace(context, stream=Stream.of(seed))
        found = REGISTRY[name].build(given)(points)
        if name != "ucb":  # whose schedule counts the looks
            return found
        centre = mean(context.posterior)(points)
        return np.asarray((found - centre) / schedule(len(context.posterior.X), D))

    if name in ONE_SET:  # draws its own noise: where there is none, a path meets the value
        sure = crowded(X, Y, np.where(np.isnan(known), np.nan, 1e-10))
        assert values(sure)[0] == pytest.approx(Y[i], abs=1e-3)
        assert values(once)[0] != pytest.approx(Y[i], abs=1e-2)
    elif name in DRAWN:
        both = np.array([[values(c, seed) for seed in range(40)] for c in (once, twice)])
        drawn = np.exp(both) if name == "lognei" else both
        error = np.sqrt(drawn.var(1).sum(0) / drawn.shape[1])
        assert np.all(np.abs(drawn[0].mean(0) - drawn[1].mean(0)) < 4.5 * error + 1e-9)
    else:
        # The maximum of `mes` counts a place twice that is observed twice.
        rtol, atol = (1e-3, 1e-5) if name == "mes" else (1e-6, 1e-6)
        np.testing.assert_allclose(values(twice), values(once), rtol=rtol, atol=atol)
        assert np.max(np.abs(values(ignored) - values(once))) > 1e-4


def test_what_is_pending_counts(name: str) -> None:
    """A pending point elsewhere changes the values; another ask of Thompson's has another path."""
    context = crowded(X, Y, np.full(N, np.nan))
    told = condition(changed(noise=np.full(M, NOISE)), X, Y, "rbf")
    elsewhere = told.append(np.array([0.9, 0.1]), context.posterior.residual[..., -1])
    moved = replace(context, model=(elsewhere,))
    first, second = (REGISTRY[name].build(c)(OTHERS) for c in (context, moved))
    assert (np.max(np.abs(first - second)) > 1e-3) == (name not in ONE_SET)


def test_draws_come_from_the_stream_alone(name: str) -> None:
    """The same twice; another stream matters to what draws, and to nothing else."""
    posterior = condition(HYPERS, X, Y)
    first, again, *others = (
        REGISTRY[name].build(context_of(posterior, seed=seed))(RANDOM) for seed in (0, 0, 1, 2, 3)
    )
    np.testing.assert_array_equal(first, again)
    draws = name in DRAWN | ONE_SET | {"mes", "es"}
    assert (np.max(np.abs(first - others)) > 0) == draws


def test_it_has_what_it_says_it_needs(name: str) -> None:
    """It builds from what it needs, and says so where that is missing."""
    entry, context = REGISTRY[name], context_of(condition(HYPERS, X, Y))
    without = {"paths": {"paths": None}, "optima": {"optima": None}}
    for need, nothing in without.items():
        less = replace(context, **nothing)
        if need in entry.needs:
            with pytest.raises(ValueError, match=r"needs (sample paths|optima)"):
                entry.build(less)
        else:
            np.testing.assert_array_equal(entry.build(less)(RANDOM), entry.build(context)(RANDOM))


def test_points_of_another_shape_are_refused(name: str) -> None:
    alpha = built(name)
    for wrong in (np.full(D, 0.5), np.full((4, D + 1), 0.5), np.full((4, 1), 0.5)):
        for use in (alpha, alpha.gradient):
            with pytest.raises(ValueError, match="shape"):
                use(wrong)


def test_entry_is_documented(name: str) -> None:
    assert REGISTRY[name].summary
    assert name == name.lower()
    assert name in names()
    assert name not in CONTROLS
