"""What every acquisition function of the registry has to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optpair.acquisition.peak import Peak
from optpair.pairs import OptimalPairs
from optpair.runtime import make_key

from acquisition_cases import HYPERS, STEP, D, M, N, P, X, Y, source
from optpair.acquisition import (
    REGISTRY,
    Acquisition,
    Context,
    ei,
    gibbon,
    jes,
    logei,
    mes,
    nei,
    rmes,
)
from optpair.acquisition.es import ES
from optpair.acquisition.kg import KG
from optpair.acquisition.mean import Mean
from optpair.acquisition.mes import MAXIMA, _above_data, _maxima
from optpair.acquisition.pes import PES
from optpair.acquisition.pi import PI
from optpair.acquisition.ts import TS
from optpair.acquisition.ucb import UCB, schedule
from optpair.cube import Cube
from optpair.gp import paths as gp_paths
from optpair.gp.posterior import Hyperparameters, Posterior, append, condition, fit

RNG = source()
LEAVES = tuple(np.asarray(v) for v in jax.tree.leaves(HYPERS))
STARS = OptimalPairs(x=RNG.uniform(size=(M, P, D)), f=Y.max() + RNG.uniform(0.1, 2.0, (M, P)))
RANDOM = RNG.uniform(size=(20, D))
SPECIAL = np.concatenate([X, STARS.x[0], [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]])
POINTS = np.concatenate([RANDOM, SPECIAL])

ONE_SET = {"ts"}
DRAWN = {"nei", "lognei"}  # whose draws at the data are others where there are more data
SUMS = {"jes-exact", "rmes", "es"}  # of many terms, which leave round-off
NOISE = 0.2
STEPS = STEP * np.concatenate([np.zeros((1, D)), np.eye(D), -np.eye(D)])
OTHERS = np.random.default_rng(8).uniform(0.01, 0.99, (20, D))  # not those that are screened
CROSS = (STEPS[:, None] + OTHERS).reshape(-1, D)  # and a step each way

pytestmark = pytest.mark.parametrize("name", list(REGISTRY))


def built(
    name: str,
    unit: float = 1.0,
    shift: float = 0.0,
    order: tuple[int, ...] = (0, 1, 2),
    noise: np.ndarray = LEAVES[2],
) -> Acquisition:
    """The function of that name on y = unit·(Y + shift), with its sets in that order."""
    index = list(order)
    scale, output, _, mean, rough = LEAVES
    hypers = Hyperparameters(
        scale[index],
        unit**2 * output[index],
        unit**2 * noise[index],
        unit * (mean[index] + shift),
        rough[index],
    )
    posterior = condition(hypers, X, unit * (Y + shift))
    stars = OptimalPairs(STARS.x[index], unit * (STARS.f[index] + shift))
    return REGISTRY[name].build(context_of(posterior, stars))


def context_of(posterior: Posterior, stars: OptimalPairs) -> Context:
    """From a fixed key: the same draws every time, whatever the units are."""
    paths = gp_paths.sample(make_key(1), posterior, paths=P, features=64)
    return Context(posterior, Cube.box(D), jnp.asarray(RANDOM), make_key(0), paths, stars)


def by_function(name: str, c: Context) -> Acquisition | None:
    """What the public functions make of the same, for names that share a class with others."""
    posterior = c.posterior
    made: dict[str, Callable[[], Acquisition]] = {
        "jes": lambda: jes(posterior, STARS),
        "jes-exact": lambda: jes(posterior, STARS, exact=True),
        "mes": lambda: mes(posterior, _maxima(c.key, posterior, c.points, MAXIMA)),
        "mes-paths": lambda: mes(
            posterior, np.asarray(_above_data(posterior, jnp.asarray(STARS.f)))
        ),
        "gibbon": lambda: gibbon(posterior, STARS),
        "rmes": lambda: rmes(posterior, STARS),
        "ei": lambda: ei(posterior),
        "logei": lambda: logei(posterior),
        "nei": lambda: nei(posterior, c.key),
        "lognei": lambda: nei(posterior, c.key, log=True),
    }
    return made[name]() if name in made else None


def test_a_name_is_its_function(name: str) -> None:
    alone = {"jes-peak": Peak, "pes": PES, "es": ES, "pi": PI, "ucb": UCB, "kg": KG, "ts": TS}
    found, wanted = built(name), by_function(name, context_of(condition(HYPERS, X, Y), STARS))
    if wanted is None:
        assert type(found) is {**alone, "mean": Mean}[name]
        return
    # At the data few digits are left of what noisy EI divides by.
    away = len(RANDOM)
    np.testing.assert_allclose(found(POINTS)[:away], wanted(POINTS)[:away], rtol=1e-9)


def test_values_are_numpy_float64_of_the_points_shape(name: str) -> None:
    alpha = built(name)
    values = alpha(POINTS)
    assert isinstance(values, np.ndarray)
    assert values.dtype == np.float64
    assert values.shape == (len(POINTS),)
    assert isinstance(alpha([[0.5, 0.5]]), np.ndarray)
    assert np.std(values) > 0


def test_values_are_finite_everywhere(name: str) -> None:
    """At random points, at data, at pairs, in corners; with noise and without."""
    assert np.all(np.isfinite(built(name)(POINTS)))
    assert np.all(np.isfinite(built(name, noise=np.zeros(M))(POINTS)))


def test_a_batch_is_one_point_at_a_time(name: str) -> None:
    alpha = built(name)
    together = alpha(POINTS)
    for i in (0, 7, 21, 30, len(POINTS) - 1):
        np.testing.assert_allclose(alpha(POINTS[i : i + 1]), together[i : i + 1], rtol=1e-9)


def test_many_points_are_screened_in_blocks(name: str) -> None:
    alpha = built(name)
    many = np.tile(POINTS, (20, 1))[:613]
    # What is left of a variance at the data has fewer digits, and noisy EI divides by it.
    rtol = 1e-7 if name in {"nei", "lognei"} else 1e-9
    np.testing.assert_allclose(alpha(many)[-36:], alpha(many[-36:]), rtol=rtol)


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
    expected = {
        "gain": plain,
        "improvement": unit * plain,
        "log improvement": plain + np.log(unit),
        "worth": unit * (plain + shift),
    }[REGISTRY[name].values]
    size = unit if REGISTRY[name].values in ("improvement", "worth") else 1.0
    np.testing.assert_allclose(moved / size, expected / size, rtol=1e-6, atol=1e-7)


def test_gains_and_improvements_are_not_negative(name: str) -> None:
    """With noise and without, at data and pairs too; a worth or a logarithm can be."""
    signs = [built(name, noise=noise)(POINTS) for noise in (LEAVES[2], np.zeros(M))]
    if REGISTRY[name].values in ("gain", "improvement"):
        assert np.min(signs) >= (-1e-14 if name in SUMS else 0.0)
    else:
        assert np.min(signs) < 0


def test_the_order_of_sets_does_not_matter(name: str) -> None:
    if name in ONE_SET:
        pytest.skip("one set is drawn, by its place in the order")
    np.testing.assert_allclose(
        built(name, order=(2, 0, 1))(POINTS), built(name)(POINTS), rtol=1e-10
    )


def test_sets_do_matter(name: str) -> None:
    """A set counted twice changes the average; a set that is drawn decides everything."""
    if name in ONE_SET:
        seen = [built(name, order=(m, m, m))(POINTS) for m in range(M)]
        assert sum(np.allclose(built(name)(POINTS), values) for values in seen) == 1
        return
    assert np.max(np.abs(built(name, order=(0, 0, 1))(POINTS) - built(name)(POINTS))) > 1e-3


def test_slopes_are_finite_everywhere(name: str) -> None:
    """In reverse mode, as the maximiser takes them, inside a compiled function."""

    @jax.jit
    def slope(alpha: Acquisition, points: jax.Array) -> jax.Array:
        return jax.grad(lambda X: jnp.sum(alpha.evaluate(X)))(points)

    for noise in (LEAVES[2], np.zeros(M)):
        slopes = np.asarray(slope(built(name, noise=noise), jnp.asarray(POINTS)))
        assert slopes.shape == POINTS.shape
        assert np.all(np.isfinite(slopes))
        assert np.all(np.abs(slopes[: len(RANDOM)]).max(1) > 0)


def crowded(X: np.ndarray, y: np.ndarray, noise_var: np.ndarray) -> Context:
    """RBF, padding, known noise of some, one pending with a fantasy a path; one σ² for all sets."""
    scale, output, _, mean, _ = LEAVES
    hypers = Hyperparameters(scale, output, np.full(M, NOISE), mean)
    told = fit(hypers, X, y, noise_var, kernel="rbf", columns=(0, 1), size=16)
    paths = gp_paths.sample(make_key(1), told, paths=P, features=64)
    values = jnp.asarray(np.random.default_rng(7).normal(size=(M, P)))
    grown = jax.jit(append)(told, jnp.asarray([0.4, 0.6]), values)
    stars = OptimalPairs(jnp.asarray(STARS.x), jnp.asarray(STARS.f))
    return Context(grown, Cube.box(D), jnp.asarray(RANDOM), make_key(0), paths, stars)


@partial(jax.jit, static_argnums=0)
def seen(name: str, context: Context, points: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Values and slopes of the function of that name: built, evaluated and differentiated."""

    def total(points: jax.Array) -> tuple[jax.Array, jax.Array]:
        values = REGISTRY[name].build(context).evaluate(points)
        return jnp.sum(values), values

    (_, values), slopes = jax.value_and_grad(total, has_aux=True)(points)
    return values, slopes


def test_slopes_are_those_of_the_values(name: str) -> None:
    """By central differences, in the crowded case; nor is any gain or improvement negative."""
    known = np.full(N, np.nan)
    known[[1, 4]] = 0.5, 1e-4
    values, slopes = (np.asarray(v) for v in seen(name, crowded(X, Y, known), jnp.asarray(CROSS)))
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(slopes))
    if REGISTRY[name].values in ("gain", "improvement"):
        assert np.min(values) >= (-1e-14 if name in SUMS else 0.0)
    values = values.reshape(1 + 2 * D, len(OTHERS))
    numeric = (values[1 : 1 + D] - values[1 + D :]).T / (2 * STEP)
    size = np.max(np.abs(slopes))
    assert size > 1e-3
    np.testing.assert_allclose(slopes[: len(OTHERS)], numeric, rtol=1e-5, atol=1e-6 * size)


def test_two_looks_are_one_with_half_the_noise(name: str) -> None:
    """Two values of noise σ² at one point say what their mean with `noise_var` σ²/2 says."""
    i = int(np.argmin(Y))
    points, unknown = jnp.asarray(np.concatenate([X[i : i + 1], CROSS[1:]])), np.full(N + 1, np.nan)
    known = np.where(np.arange(N) == i, NOISE / 2, np.nan)
    apart = np.append(Y, Y[i] - 0.3)
    apart[i] = Y[i] + 0.3
    twice = crowded(np.concatenate([X, X[i : i + 1]]), apart, unknown)
    once, ignored = crowded(X, Y, known), crowded(X, Y, unknown[:N])

    def values(context: Context, key: int = 0) -> np.ndarray:
        given = replace(context, key=make_key(key))
        found = np.asarray(seen(name, given, points)[0])
        if name != "ucb":  # whose schedule counts the looks
            return found
        centre = np.asarray(seen("mean", given, points)[0])
        return (found - centre) / float(schedule(jnp.sum(context.posterior.mask), D))

    if name == "ts":  # draws its own noise: where there is none, a path meets the value
        sure = crowded(X, Y, np.where(np.isnan(known), np.nan, 1e-10))
        assert values(sure)[0] == pytest.approx(Y[i], abs=1e-3)
        assert values(once)[0] != pytest.approx(Y[i], abs=1e-2)
    elif name in DRAWN:
        both = np.array([[values(c, key) for key in range(40)] for c in (once, twice)])
        drawn = np.exp(both) if name == "lognei" else both
        error = np.sqrt(drawn.var(1).sum(0) / drawn.shape[1])
        assert np.all(np.abs(drawn[0].mean(0) - drawn[1].mean(0)) < 4.5 * error + 1e-9)
    else:
        # The maximum of `mes` counts a place twice that is observed twice.
        rtol, atol = (1e-3, 1e-5) if name == "mes" else (1e-6, 1e-6)
        np.testing.assert_allclose(values(twice), values(once), rtol=rtol, atol=atol)
        assert np.max(np.abs(values(ignored) - values(once))) > 1e-4


def test_points_of_another_shape_are_refused(name: str) -> None:
    alpha = built(name)
    for wrong in (np.full(D, 0.5), np.full((4, D + 1), 0.5), np.full((4, 1), 0.5)):
        with pytest.raises(ValueError, match="shape"):
            alpha(wrong)


def test_entry_is_documented(name: str) -> None:
    assert REGISTRY[name].summary
    assert name == name.lower()
