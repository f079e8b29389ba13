"""HMC against exact and importance-sampled posteriors, resampling, rescaling, and saved states."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from gp_cases import D, N, X, Y
from inference_cases import PRIOR, THETA, on_plane, thetas
from optpair.gp import RBF, Gamma, LogNormal, Matern52, Prior
from optpair.gp.inference import Chains, Inference, Marginal, Mixing
from optpair.gp.inference.chains import (
    MASS_GAIN,
    OLDEST,
    POOLED,
    WINDOW,
    cold_start,
    refresh,
    resample,
    rescale,
    start_chains,
)
from optpair.gp.likelihood import Likelihood, Sample
from optpair.gp.process import Process
from optpair.runtime.streams import Stream

# --- HMC ----------------------------------------------------------------------------------------

CURVED = Prior(lengthscale=Gamma(2.5, 5.0), outputscale=LogNormal(1.0, 0.7))
ALONE = Process((0,), RBF(), CURVED)
NOTHING = Sample(np.zeros((0, 1)), np.zeros(0), np.zeros(0))


def exact_prior(rng: np.random.Generator, chains: int) -> np.ndarray:
    """Draws from CURVED in the unconstrained parameters, d = 1."""
    return np.stack(
        [
            np.log(rng.gamma(2.5, 1 / 5, chains)),
            rng.normal(1.0, 0.7, chains),
            rng.normal(-4.0, 1.0, chains),
            rng.normal(0.0, 1.0, chains),
        ],
        axis=1,
    )


def distances(theta: np.ndarray) -> list[float]:
    """p-values of Kolmogorov–Smirnov tests of each coordinate against CURVED."""
    return [
        stats.kstest(np.exp(theta[:, 0]), stats.gamma(2.5, scale=1 / 5).cdf).pvalue,
        stats.kstest(theta[:, 1], stats.norm(1.0, 0.7).cdf).pvalue,
        stats.kstest(theta[:, 2], stats.norm(-4.0, 1.0).cdf).pvalue,
        stats.kstest(theta[:, 3], stats.norm(0.0, 1.0).cdf).pvalue,
    ]


def chains_at(position: np.ndarray, step: float) -> Chains:
    recent = np.repeat(position[:, None], WINDOW, axis=1)
    return Chains(
        position,
        ALONE.table.log_prior(position)[0],
        np.zeros(len(position)),
        np.zeros(len(position), int),
        step,
        np.full(4, 0.5),
        recent,
    )


CHAINS = 400


def moved_often(
    seed: int, chains: Chains, times: int = 10, moves: int = CHAINS, gain: float = 0.0
) -> tuple[Chains, Mixing]:
    """Refreshed again and again, without data."""
    for i in range(times):
        stream = Stream.of(seed).child(i)
        chains, mixing = refresh(stream, chains, NOTHING, ALONE, moves=moves, gain=gain)
    return chains, mixing


def test_refresh_leaves_its_target_invariant() -> None:
    """Without data the target is the prior: Independent chains start in it, and stay in it.

    Steps are long, so that a fifth of the moves is refused and the acceptance step matters.
    """
    position = exact_prior(np.random.default_rng(1), CHAINS)
    moved, mixing = moved_often(0, chains_at(position, 1.0))
    assert 0.5 < mixing.acceptance < 0.97
    assert mixing.effective == pytest.approx(CHAINS)
    assert min(distances(moved.position)) > 1e-3
    assert np.mean(moved.position == position) < 0.01  # they did move
    assert moved.step_size == 1.0  # a gain of 0 adapts nothing


def test_refresh_finds_its_target() -> None:
    """From a start that is too narrow and off centre, 24 transitions reach the prior."""
    position = exact_prior(np.random.default_rng(2), CHAINS) * 0.3 + 0.5
    assert max(distances(position)) < 1e-10
    chains = chains_at(position, 0.5)
    # The reweighting needs densities that agree with the start; make it a no-op instead.
    for i in range(3):
        chains = replace(chains, log_density=ALONE.table.log_prior(chains.position)[0])
        chains, mixing = moved_often(i, chains, times=8)
    assert min(distances(chains.position)) > 1e-3
    assert mixing.rhat < 1.2
    assert mixing.divergences == 0
    np.testing.assert_array_equal(chains.recent[:, -1], chains.position)
    np.testing.assert_allclose(
        chains.log_density, ALONE.table.log_prior(chains.position)[0], rtol=1e-9
    )


def test_those_that_have_waited_longest_are_moved() -> None:
    """A third at a time: after three refreshes every chain has moved once."""
    position = exact_prior(np.random.default_rng(3), 12)
    start = chains_at(position, 0.3)
    chains, seen = start, np.zeros(12, int)
    for i in range(3):
        before = chains
        chains, _ = moved_often(i, chains, times=1, moves=4)
        assert np.sum(chains.age == 0) == 4
        assert np.all((chains.position == before.position).all(1) | (chains.age == 0))
        seen += chains.age == 0
    np.testing.assert_array_equal(seen, 1)
    np.testing.assert_array_equal(np.sort(chains.age), [0] * 4 + [1] * 4 + [2] * 4)
    # Copies come first, whatever their age.
    ages = np.where(np.arange(12) == 7, OLDEST, chains.age)
    chains, _ = moved_often(9, replace(chains, age=ages), times=1, moves=4)
    assert chains.age[7] == 0


def test_chains_stuck_apart_are_told_by_rhat() -> None:
    position = exact_prior(np.random.default_rng(1), CHAINS)
    _, mixing = moved_often(0, chains_at(position, 1e-3))
    assert mixing.rhat > 3


def test_adaptation_aims_at_its_acceptance() -> None:
    """A step accepted too often grows, and the mass follows the spread of the draws."""
    position = exact_prior(np.random.default_rng(1), CHAINS)
    moved, mixing = moved_often(0, chains_at(position, 0.1), times=1, gain=1.0)
    assert mixing.acceptance > 0.9
    assert moved.step_size == pytest.approx(0.1 * np.exp(mixing.acceptance - 0.8))
    last = moved.recent[:, -8:].reshape(-1, position.shape[1])
    expected = 0.5 + MASS_GAIN * (np.clip(last.var(0), 1e-3, 4.0) - 0.5)
    np.testing.assert_allclose(moved.inverse_mass, expected, rtol=1e-10)


_RNG = np.random.default_rng(10)
LINE = _RNG.uniform(size=(7, 1))
VALUES = np.sin(6 * LINE[:, 0]) + 0.1 * _RNG.normal(size=7)
ON_LINE = Process((0,), Matern52(), PRIOR)


class Moment(NamedTuple):
    """An average over the posterior, its standard error, and the spread of what is averaged."""

    value: np.ndarray
    error: np.ndarray
    spread: np.ndarray


@pytest.fixture(scope="module")
def reference() -> tuple[Moment, Moment]:
    """Mean and variance of θ given all of LINE, by importance sampling from the prior.

    The errors are those of self-normalised importance sampling.
    """
    rng = np.random.default_rng(5)
    draws = 150_000
    theta = rng.normal(size=(draws, 4)) * [3**0.5, 0.7, 1.0, 1.0] + [2**0.5, 0.0, -4.0, 0.0]
    log_weights = np.empty(draws)
    for rows in np.array_split(np.arange(draws), 10):
        t = theta[rows]
        u = np.sqrt(5) * np.abs(LINE - LINE.T) / np.exp(t[:, 0])[:, None, None]
        K = np.exp(t[:, 1])[:, None, None] * (1 + u + u**2 / 3) * np.exp(-u)
        K = K + (PRIOR.noise_floor + np.exp(t[:, 2]))[:, None, None] * np.eye(7)
        C = np.linalg.cholesky(K)
        white = np.linalg.solve(C, (VALUES - 0.5 * t[:, 3:])[..., None])[..., 0]
        log_weights[rows] = -np.sum(white**2, -1) / 2 - np.sum(
            np.log(np.diagonal(C, axis1=1, axis2=2)), -1
        )
    w = np.exp(log_weights - log_weights.max())
    w /= w.sum()
    assert 1 / np.sum(w**2) > 1000
    mean = w @ theta
    squares = (theta - mean) ** 2
    variance = w @ squares
    apart = (squares - variance) ** 2
    return (
        Moment(mean, np.sqrt(w**2 @ squares), np.sqrt(variance)),
        Moment(variance, np.sqrt(w**2 @ apart), np.sqrt(w @ apart)),
    )


RUNS, SETS = 3, 64


def error(runs: np.ndarray) -> np.ndarray:
    """The standard error of the mean over (run, chain).

    That of independent chains or, where a run's chains share ancestors and it is larger, that of
    independent runs.
    """
    chains = runs.std((0, 1)) / np.sqrt(runs[..., 0].size)
    whole = runs.mean(1).std(0, ddof=1) / np.sqrt(len(runs))
    return np.asarray(np.maximum(chains, whole))


def agree(runs: np.ndarray, reference: tuple[Moment, Moment]) -> None:
    """Moments over independent runs (run, chain, θ) against the reference.

    4.5 standard errors, in 8 comparisons; those of chains by the posterior's own spread, which few
    draws that are too narrow would underrate.
    """
    for draws, truth in zip((runs, (runs - reference[0].value) ** 2), reference, strict=True):
        gap = np.abs(draws.mean((0, 1)) - truth.value)
        own = np.maximum(error(draws), truth.spread / np.sqrt(draws[..., 0].size))
        assert np.all(gap < 4.5 * np.hypot(own, truth.error))


@pytest.fixture(scope="module")
def cold_runs() -> list[Chains]:
    """Cold starts on the first four points."""
    data = Sample(LINE[:4], VALUES[:4], np.full(4, np.nan))
    return [cold_start(Stream.of(i), SETS, data, ON_LINE, SETS // 2)[0] for i in range(RUNS)]


def test_a_cold_start_draws_from_the_posterior(
    reference: tuple[Moment, Moment],
) -> None:
    data = Sample(LINE, VALUES, np.full(7, np.nan))
    runs, rhats = [], []
    for i in range(RUNS):
        chains, mixing = cold_start(Stream.of(100 + i), SETS, data, ON_LINE, SETS // 2)
        runs.append(chains.position)
        rhats.append(mixing.rhat)
        assert 0.6 < mixing.acceptance <= 1
    agree(np.stack(runs), reference)
    assert np.median(rhats) < 1.3


def test_warm_chains_draw_from_it_too(
    cold_runs: list[Chains],
    reference: tuple[Moment, Moment],
) -> None:
    """Three more points, one at a time, each followed by a few refreshes that move half of them."""
    runs = []
    for i, chains in enumerate(cold_runs):
        for n in (5, 6, 7):
            data = Sample(LINE[:n], VALUES[:n], np.full(n, np.nan))
            for turn in range(4):
                chains, _ = refresh(
                    Stream.of(i).child(n, turn),
                    chains,
                    data,
                    ON_LINE,
                    moves=SETS // 2,
                    gain=0.1,
                )
        runs.append(chains.position)
    agree(np.stack(runs), reference)


_LONG = np.random.default_rng(0)
LONG_LINE = _LONG.uniform(size=(40, 1))
LONG_VALUES = np.sin(6 * LONG_LINE[:, 0]) + 0.1 * _LONG.normal(size=40)


def first(n: int) -> Sample:
    """The beginning of a long search."""
    return Sample(LONG_LINE[:n], LONG_VALUES[:n], np.full(n, np.nan))


@pytest.fixture(scope="module")
def from_cold() -> np.ndarray:
    """Chains started on all forty points."""
    runs = [
        cold_start(Stream.of(50 + i), SETS, first(40), ON_LINE, SETS // 2)[0] for i in range(RUNS)
    ]
    return np.stack([chains.position for chains in runs])


@pytest.mark.parametrize("every", [1, 9])
def test_chains_follow_a_long_search(every: int, from_cold: np.ndarray) -> None:
    """Forty points, one at a time or nine, an eighth of the chains moved a point: as from cold."""
    followed, cold = [], from_cold
    for i in range(RUNS):
        chains, _ = cold_start(Stream.of(i), SETS, first(4), ON_LINE, SETS // 2)
        for n in range(5, 41):
            stream, seen = Stream.of(i).child(n), first(4 + -(-(n - 4) // every) * every)
            chains, _ = refresh(stream, chains, seen, ON_LINE, moves=SETS // 8, gain=0.1)
        followed.append(chains.position)
    centre = np.mean(cold, (0, 1))
    for power in (1, 2):
        ours, theirs = (np.array(runs) - centre for runs in (followed, cold))
        gap = np.mean(ours**power, (0, 1)) - np.mean(theirs**power, (0, 1))
        assert np.all(np.abs(gap) < 4.5 * np.hypot(error(ours**power), error(theirs**power)))
    assert min(len(np.unique(run[:, 0])) for run in followed) > 0.8 * SETS


# --- resampling, rescaling, MAP -----------------------------------------------------------------


def numbered(M: int) -> Chains:
    """Chain i sits at i, with log density −i."""
    position = np.arange(M)[:, None] * np.ones(4)
    recent = np.repeat(position[:, None], WINDOW, axis=1)
    old = -np.arange(M, dtype=float)
    return Chains(position, old, np.zeros(M), np.zeros(M, int), 0.2, np.ones(4), recent)


def survivors(change: np.ndarray, seed: int = 0) -> tuple[np.ndarray, float]:
    """Which chains are left after log densities changed by `change`, and the effective number."""
    chains = numbered(len(change))
    coin = Stream.of(seed).draw().uniform()
    new, effective = resample(coin, chains, chains.log_density + change)
    np.testing.assert_array_equal(new.recent[:, 0], new.position)
    kept = new.position[:, 0].astype(int)
    np.testing.assert_array_equal(new.age == OLDEST, np.append(False, kept[1:] == kept[:-1]))
    return kept, effective


def test_equal_chains_are_all_kept() -> None:
    for constant in (0.0, -1e5):
        kept, effective = survivors(np.full(12, constant))
        np.testing.assert_array_equal(kept, np.arange(12))
        assert effective == pytest.approx(12)


def test_resampling_is_systematic() -> None:
    """Chain i is copied ⌊M w_i⌋ or ⌈M w_i⌉ times, on average M w_i."""
    change = np.array([0.0, 3.0, 2.0, -1.0, 0.5, 3.5, -5.0, 1.0, 0.0, 0.0, 2.0, -np.inf])
    share = 12 * np.exp(change) / np.exp(change).sum()
    counts = []
    for seed in range(200):
        kept, effective = survivors(change, seed)
        assert effective == pytest.approx(144 / np.sum(share**2))
        counts.append(np.bincount(kept, minlength=12))
    assert np.all(np.abs(np.array(counts) - share) < 1)
    # Counts differ from the share by less than 1, so their standard deviation is at most ½.
    assert np.all(np.abs(np.mean(counts, 0) - share) < 4 * 0.5 / np.sqrt(200))


@pytest.mark.parametrize("impossible", [[0, 3], list(range(10))])
def test_impossible_chains_are_removed(impossible: list[int]) -> None:
    """Few or many: an impossible chain cannot move, as its density has no slope."""
    change = np.zeros(12)
    change[impossible] = -np.inf
    for seed in range(5):
        kept, effective = survivors(change, seed)
        assert effective == pytest.approx(12 - len(impossible))
        assert not set(kept) & set(impossible)
        assert set(kept) == set(range(12)) - set(impossible)


def test_where_all_are_impossible_nothing_is_done() -> None:
    kept, effective = survivors(np.full(12, -np.inf))
    np.testing.assert_array_equal(kept, np.arange(12))
    assert effective == pytest.approx(12)


def test_what_data_add_to_all_chains_alike_says_nothing_of_them() -> None:
    chains = numbered(12)
    for evidence in (5.0, -700.0, 1e4):
        chains, effective = resample(0.5, chains, chains.log_density + evidence)
        assert effective == pytest.approx(12)
        np.testing.assert_allclose(chains.log_weight, 0.0, atol=1e-9)


def test_weights_add_up_until_chains_are_resampled() -> None:
    """Two data one after the other say of a chain what they say together."""
    first, second = 0.1 * np.random.default_rng(4).normal(size=(2, 12))
    start = numbered(12)
    once, _ = resample(0.5, start, start.log_density + first)
    twice, effective = resample(0.5, once, once.log_density + second)
    together, expected = resample(0.5, start, start.log_density + first + second)
    np.testing.assert_allclose(twice.log_weight, together.log_weight, atol=1e-12)
    assert np.mean(np.exp(twice.log_weight)) == pytest.approx(1)
    assert effective == pytest.approx(expected)


def test_a_move_does_not_save_a_chain_from_its_weight() -> None:
    """Half of the chains take the curve for noise, and their steps are too short to leave."""
    bad = np.arange(12) < 6
    position = np.where(bad[:, None], [3.0, -2.0, 0.0, 0.0], [-1.0, 0.0, -4.0, 0.0])
    line = np.random.default_rng(0).uniform(size=(20, 1))
    values = np.sin(6 * line[:, 0])

    def data(n: int) -> Sample:
        return Sample(line[:n], values[:n], np.full(n, np.nan))

    density = Likelihood(data(8), ON_LINE).density(position)
    chains = replace(chains_at(position, 1e-3), log_density=density, inverse_mass=np.full(4, 1e-3))
    for n in range(9, 21):
        chains, mixing = refresh(Stream.of(n), chains, data(n), ON_LINE, moves=12, gain=0.0)
        assert mixing.effective > 6  # no datum by itself decides
    assert np.all(chains.position[:, 0] < 0)


def test_a_chain_that_was_impossible_starts_anew() -> None:
    density = np.where(np.arange(12) == 2, -np.inf, 0.0)
    chains = replace(numbered(12), log_density=density)
    after, effective = resample(0.5, chains, np.full(12, 7.0))
    assert effective == pytest.approx(12)
    np.testing.assert_allclose(after.log_weight, 0.0, atol=1e-12)


def test_rescaling_keeps_the_hyperparameters_in_raw_units() -> None:
    """y = loc + scale·standardised, before and after."""
    (loc, scale), (new_loc, new_scale) = (3.0, 2.0), (3.8, 1.5)
    # The floor itself stays where it is, on standardised values.
    process = on_plane("mixed", Prior(noise_floor=1e-12))
    theta = thetas("mixed")
    recent = np.repeat(theta[:, None] + 0.1, WINDOW, axis=1)
    chains = Chains(theta, np.zeros(4), np.zeros(4), np.zeros(4, int), 0.2, np.ones(D + 4), recent)
    shifted = rescale(chains, scale / new_scale, (loc - new_loc) / new_scale, process)
    assert shifted is not None
    for old, new in (
        (chains.position, shifted.position),
        (chains.recent[:, 5], shifted.recent[:, 5]),
    ):
        before, after = (process.table.hyperparameters(theta) for theta in (old, new))
        np.testing.assert_allclose(after.lengthscale, before.lengthscale)
        np.testing.assert_array_equal(after.own["rough"], before.own["rough"])
        for name in ("outputscale", "noise"):
            raw = getattr(before, name) * scale**2
            np.testing.assert_allclose(getattr(after, name) * new_scale**2, raw)
        raw = loc + scale * before.mean
        np.testing.assert_allclose(new_loc + new_scale * after.mean, raw)


def test_rescaled_chains_see_the_same_likelihood() -> None:
    """But for n log ratio, the same for all: the reweighting sees only what the prior says."""
    ratio, offset = 1.7, -0.4
    process = on_plane(prior=Prior(noise_floor=1e-12))
    recent = np.repeat(THETA[:, None], WINDOW, axis=1)
    chains = Chains(THETA, np.zeros(4), np.zeros(4), np.zeros(4, int), 0.2, np.ones(5), recent)
    shifted = rescale(chains, ratio, offset, process)
    assert shifted is not None
    unknown = np.full(N, np.nan)
    old, new = Sample(X, Y, unknown), Sample(X, ratio * Y + offset, unknown)
    before, after = (
        Likelihood(data, process).density(theta) - process.table.log_prior(theta)[0]
        for theta, data in ((chains.position, old), (shifted.position, new))
    )
    np.testing.assert_allclose(after, before - N * np.log(ratio), rtol=1e-9)


@pytest.mark.parametrize("shift", [(0.3, 0.0), (3.1, 0.0), (1.0, 2.1), (1.0, -2.1)])
def test_a_scaling_too_far_away_is_not_followed(shift: tuple[float, float]) -> None:
    assert rescale(numbered(4), *shift, ALONE) is None
    assert rescale(numbered(4), 1.0, 0.0, ALONE) is not None


def test_starts_spread_over_the_prior() -> None:
    chains = start_chains(Stream.of(0), 4000, on_plane("mixed"))
    centre = np.array([2**0.5 + np.log(2) / 2] * 2 + [0.0, -4.0, 0.0, 0.0])
    spread = np.array([3**0.5, 3**0.5, 0.7, 1.0, 1.0, 1.0])
    z = (chains.position - centre) / spread
    clipped = np.clip(np.random.default_rng(0).normal(size=100_000), -2, 2).std()
    assert np.all(np.abs(z.mean(0)) < 4 / np.sqrt(4000))
    np.testing.assert_allclose(z.std(0), clipped, rtol=4 / np.sqrt(2 * 4000))


# --- the way of inference -----------------------------------------------------------------------

SEEN = Sample(LINE, VALUES, np.full(7, np.nan))


def test_an_update_starts_and_goes_on() -> None:
    way = Marginal(sets=6)
    assert isinstance(way, Inference)
    assert way.standardises
    state, mixing = way.update(Stream.of(0), None, SEEN, ON_LINE, 7)
    assert state.position.shape == (6, 4)
    assert mixing.recent.shape == (6, WINDOW, 4)
    again, _ = way.update(Stream.of(0), None, SEEN, ON_LINE, 7)
    np.testing.assert_array_equal(again.position, state.position)
    warm, mixing = way.update(Stream.of(1), state, SEEN, ON_LINE, 2)
    assert 0 <= mixing.acceptance <= 1
    assert np.mean(warm.position == state.position) < 0.2
    hypers = way.hyperparameters(warm, ON_LINE)
    np.testing.assert_allclose(hypers.lengthscale, np.exp(warm.position[:, :1]))


def test_an_update_without_new_values_changes_nothing() -> None:
    way = Marginal(sets=6)
    state, _ = way.update(Stream.of(0), None, SEEN, ON_LINE, 7)
    same, mixing = way.update(Stream.of(1), state, SEEN, ON_LINE, 0)
    assert same is state
    assert mixing is None


def test_more_sets_come_from_more_rounds() -> None:
    way = Marginal(sets=6)
    state, _ = way.update(Stream.of(0), None, SEEN, ON_LINE, 7)
    wider = way.wider(Stream.of(1), state, SEEN, ON_LINE)
    assert wider.sets == POOLED * 6
    assert len(np.unique(wider.noise)) > 2 * 6


@pytest.mark.parametrize(("n", "moves"), [(0, 12), (20, 12), (64, 4), (1000, 2)])
def test_many_values_move_few_chains(n: int, moves: int) -> None:
    assert Marginal()._moves(n) == moves
    assert Marginal(moves=5)._moves(n) == 5


def test_a_state_survives_json() -> None:
    way = Marginal(sets=6)
    state, _ = way.update(Stream.of(0), None, SEEN, ON_LINE, 7)
    state = replace(state, log_density=np.where(np.arange(6) == 2, -np.inf, state.log_density))
    text = json.dumps(way.to_json(state), allow_nan=False)
    back = way.from_json(json.loads(text), ON_LINE)
    for item in fields(state):
        np.testing.assert_array_equal(getattr(back, item.name), getattr(state, item.name))
    assert back.age.dtype == state.age.dtype
    after = [way.update(Stream.of(3), s, SEEN, ON_LINE, 1).state.position for s in (state, back)]
    np.testing.assert_array_equal(*after)
    astray = replace(state, position=np.full_like(state.position, np.nan))
    assert way.to_json(astray) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position": [[0.0] * 3] * 6}, r"position has shape \(6, 3\), not \(6, 4\)"),
        ({"position": [[None] * 4] * 6}, "position holds a value that is not finite"),
        ({"age": [-1] * 6}, "age must be from 0 to 1000000, not"),
        ({"step_size": 0.0}, "step_size must be positive, not 0.0"),
        ({"inverse_mass": [1.0, 1.0, -1.0, 1.0]}, "inverse_mass must be positive"),
        ({"log_weight": [0.0] * 5}, r"log_weight has shape \(5,\), not \(6,\)"),
    ],
)
def test_what_is_no_state_is_refused(change: dict[str, object], message: str) -> None:
    way = Marginal(sets=6)
    document = way.to_json(start_chains(Stream.of(0), 6, ON_LINE))
    with pytest.raises(ValueError, match=message):
        way.from_json(document | change, ON_LINE)
