"""Acquisition functions of a user's own: their slopes, what they are given, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import HYPERS, D, M, X, Y, changed, condition, grown, source

from optpair.acquisition import (
    CONTROLS,
    REGISTRY,
    Acquisition,
    Context,
    Entry,
    ei,
    entry_of,
    names,
    pi,
    register,
    ucb,
)
from optpair.acquisition import registry as registry_module
from optpair.acquisition.special.normal import log_ei_and_slope
from optpair.cube.cube import Cube
from optpair.gp import Posterior
from optpair.runtime.streams import Stream

Q = source().uniform(size=(11, D))


def context(posterior: Posterior | None = None) -> Context:
    known = condition(HYPERS, X, Y) if posterior is None else posterior
    return Context((known,), Cube.box(D), Q, Stream.of(0))


def built(function: Callable[..., Any], posterior: Posterior | None = None) -> Acquisition:
    return entry_of(function).build(context(posterior))


def bound(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """UCB with κ = 2."""
    return np.asarray(mean + 2 * np.sqrt(variance))


def improvement(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """EI over 0.5."""
    sd = np.sqrt(variance)
    return np.asarray(sd * np.exp(log_ei_and_slope((mean - 0.5) / sd)[0]))


def test_a_function_of_moments_is_averaged_over_sets_and_fantasies() -> None:
    values = np.random.default_rng(1).normal(size=(M, 4))
    for posterior in (condition(HYPERS, X, Y), grown(values)):
        own, known = built(bound, posterior), ucb(posterior, kappa=2.0)
        np.testing.assert_allclose(own(Q), known(Q), rtol=1e-12)
        np.testing.assert_allclose(own.gradient(Q), known.gradient(Q), rtol=1e-6, atol=1e-8)


def test_slopes_by_differences_and_by_hand() -> None:
    """Differences of the two numbers are as good as derivatives that are given."""

    def by_hand(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, ...]:
        sd = np.sqrt(variance)
        z = (mean - 0.5) / sd
        log, slope = log_ei_and_slope(z)
        value = sd * np.exp(log)
        return value, value * slope / sd, value * (1 - slope * z) / (2 * variance)

    differences, exact = built(improvement), built(by_hand)
    np.testing.assert_allclose(differences(Q), exact(Q), rtol=1e-12)
    size = np.max(np.abs(exact.gradient(Q)))
    assert size > 0.1
    np.testing.assert_allclose(differences.gradient(Q), exact.gradient(Q), atol=1e-7 * size)


def test_given_derivatives_are_used() -> None:
    def wrong(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, ...]:
        return mean, np.zeros_like(mean), np.zeros_like(mean)

    np.testing.assert_array_equal(built(wrong).gradient(Q), np.zeros(Q.shape))


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_steps_suit_the_units(unit: float) -> None:
    """A mean a thousand deviations from 0, in any units."""
    shift = 1000.0
    hypers = changed(
        outputscale=unit**2 * HYPERS.outputscale,
        noise=unit**2 * HYPERS.noise,
        mean=unit * (HYPERS.mean + shift),
    )
    posterior = condition(hypers, X, unit * (Y + shift))
    level = unit * (shift + 1.0)

    def chance(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        from scipy.special import ndtr

        return np.asarray(ndtr((mean - level) / np.sqrt(variance)))

    exact = pi(posterior, threshold=level).gradient(Q)
    size = np.max(np.abs(exact))
    np.testing.assert_allclose(built(chance, posterior).gradient(Q), exact, atol=1e-5 * size)


def test_variances_are_never_zero_and_arrays_may_be_written_on() -> None:
    """At data without noise; a function that works in place does not spoil what comes after."""
    sure = condition(changed(noise=np.zeros(M)), X, Y)

    def in_place(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        assert mean.shape == variance.shape == (M, 1, len(mean[0, 0]))
        assert np.all(variance > 0)
        np.sqrt(variance, out=variance)
        mean += 2 * variance
        return mean

    own, known = built(in_place, sure), ucb(sure, kappa=2.0)
    points = np.concatenate([X, Q])
    np.testing.assert_allclose(own(points), known(points), rtol=1e-12)
    near = own.gradient(points)
    assert np.all(np.isfinite(near))
    np.testing.assert_allclose(near[len(X) :], known.gradient(Q), rtol=1e-5, atol=1e-6)


def test_a_function_of_a_context() -> None:
    seen = []

    def mine(context: Context) -> Acquisition:
        seen.append(context)
        return ei(context.posterior)

    entry = entry_of(mine)
    assert entry.needs == {"paths", "optima"}
    given = context()
    np.testing.assert_array_equal(entry.build(given)(Q), ei(given.posterior)(Q))
    assert seen == [given]
    with pytest.raises(TypeError, match="must return an Acquisition, not float"):
        entry_of(lambda context: 1.0).build(given)


def test_defaults_are_not_arguments() -> None:
    wider = entry_of(lambda mean, variance, kappa=2.0: mean + kappa * np.sqrt(variance))
    np.testing.assert_allclose(wider.build(context())(Q), built(bound)(Q), rtol=1e-12)
    assert wider.needs == frozenset()


@pytest.mark.parametrize(
    "function",
    [
        lambda: 0.0,
        lambda mean, variance, more: mean,
        lambda *moments: moments[0],
        lambda mean, *, variance: mean,
    ],
)
def test_functions_of_other_arguments_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="must take one argument"):
        entry_of(function)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda mean: mean[0], r"returned values of shape \(1, 11\)"),
        (lambda mean: 1.0, r"returned values of shape \(\)"),
        (lambda mean: np.where(mean > mean.min(), mean, np.nan), "NaN, 1 of 33"),
        (lambda mean: (mean, mean), "tuple of 2"),
        (lambda mean: (mean, mean[0], mean), "derivatives by mean of shape"),
        (lambda mean: (mean, mean, mean * np.nan), "derivatives by variance that are NaN"),
    ],
)
def test_what_a_function_returns_is_checked(returned: Any, message: str) -> None:
    def mine(mean: np.ndarray, variance: np.ndarray) -> Any:
        return returned(mean)

    with pytest.raises(ValueError, match=message) as error:
        built(mine)(Q)
    assert "mine" in str(error.value)


def test_what_is_no_acquisition_is_refused() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'logei'\?"):
        entry_of("log-ei")
    with pytest.raises(ValueError, match="'random' is a control"):
        entry_of("random")
    for wrong in (3, None, ei(condition(HYPERS, X, Y))):
        with pytest.raises(TypeError, match="acquisition must be a name, a function"):
            entry_of(wrong)
    assert entry_of("jes") is REGISTRY["jes"]
    mine = Entry(REGISTRY["ei"].build, "mine", scale="improvement")
    assert entry_of(mine) is mine


def test_registering(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of one's own, and again; never a built-in one. A refused one changes nothing."""
    entries = dict(REGISTRY)
    monkeypatch.setattr(registry_module, "_entries", entries)
    monkeypatch.setattr(registry_module, "REGISTRY", entries)
    before = names()
    first, second = (Entry(REGISTRY["ei"].build, text) for text in ("one", "two"))
    for taken in ("jes", *CONTROLS):
        with pytest.raises(ValueError, match="is built in"):
            register(taken, first)
    for bad in ("", "My-Gain", "my gain", "-gain", "gain-", "2nd"):
        with pytest.raises(ValueError, match="name must be lower-case"):
            register(bad, first)
    with pytest.raises(TypeError, match="entry"):  # the hook of the tests may be first to say it
        register("my-gain", bound)  # type: ignore[arg-type]
    assert names() == before
    register("my-gain", first)
    assert entry_of("my-gain") is first
    assert set(names()) == {*before, "my-gain"}
    register("my-gain", second)
    assert entry_of("my-gain") is second


def test_entries_are_checked() -> None:
    with pytest.raises(ValueError, match="needs must be among optima, paths, not pairs"):
        Entry(REGISTRY["ei"].build, "", frozenset({"pairs"}))
    with pytest.raises((TypeError, ValueError), match="scale"):
        Entry(REGISTRY["ei"].build, "", scale="money")  # type: ignore[arg-type]
