"""Log posterior against SciPy, HMC against exact and importance-sampled posteriors, MAP fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from optpair.runtime import Stream
from scipy import stats

from optpair.gp.inference import (
    MASS_GAIN,
    OLDEST,
    WINDOW,
    Chains,
    Mixing,
    cold_start,
    map_fit,
    refresh,
    resample,
    rescale,
    start_chains,
)
from optpair.gp.likelihood import Data, Likelihood, Model, log_prior, unpack
from optpair.gp.priors import PAPER, Gamma, LogNormal, Prior

KERNELS = ("rbf", "matern52", "mixed")
N, D = 8, 2
STEP = np.finfo(float).eps ** (1 / 3)
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(N, D)), RNG.normal(size=N)
KNOWN = np.array([np.nan, 0.5, np.nan, 0.02, np.nan, np.nan, 0.1, np.nan])
THETA = RNG.normal(size=(4, D + 3)) * [0.7, 0.7, 0.5, 0.7, 1.0] - [1.0, 0.3, 0.0, 3.0, 0.0]
ROUGH = np.array([[-0.4], [0.0], [0.3], [1.2]])  # log odds of the rough share, in units of 4
PRIOR = Prior(noise_floor=1e-3)

UNKNOWN = np.full(N, np.nan)


def on_plane(kernel: str = "rbf", prior: Prior = PRIOR) -> Model:
    return Model(kernel, prior, (0, 1))


def thetas(kernel: str) -> np.ndarray:
    return np.hstack([THETA, ROUGH]) if kernel == "mixed" else THETA


def covariance(kernel: str, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
    r = np.sqrt(np.sum(((X[:, None] - X) / np.exp(theta[:D])) ** 2, -1))
    u = np.sqrt(5) * r
    share = {"rbf": 0.0, "matern52": 1.0, "mixed": 1 / (1 + np.exp(-4 * theta[-1]))}[kernel]
    h = (1 - share) * np.exp(-(r**2) / 2) + share * (1 + u + u**2 / 3) * np.exp(-u)
    return np.exp(theta[D]) * h


def log_likelihood(
    kernel: str, theta: np.ndarray, X: np.ndarray, y: np.ndarray, noise_var: np.ndarray
) -> float:
    """log N(y; μ, K + Σ), normalised."""
    noise = PRIOR.noise_floor + np.exp(theta[D + 1])
    K = covariance(kernel, theta, X)
    K = K + np.diag(np.where(np.isnan(noise_var), noise, noise_var))
    return float(stats.multivariate_normal.logpdf(y, np.full(len(y), 0.5 * theta[D + 2]), K))


def scipy_log_prior(theta: np.ndarray) -> float:
    """The documented default priors, normalised."""
    return float(
        np.sum(stats.norm.logpdf(theta[:D], 2**0.5 + 0.5 * np.log(D), 3**0.5))
        + stats.norm.logpdf(theta[D], 0, 0.7)
        + stats.norm.logpdf(theta[D + 1], -4, 1)
        + np.sum(stats.norm.logpdf(theta[D + 2 :]))
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("noise_var", [np.full(N, np.nan), KNOWN], ids=["inferred", "some-known"])
def test_log_posterior_is_scipys(kernel: str, noise_var: np.ndarray) -> None:
    """Likelihood and prior, each up to a constant: (n/2) log 2π and the prior's normaliser."""
    ours, theta = Likelihood(Data(X, Y, noise_var), on_plane(kernel)), thetas(kernel)
    prior, _ = log_prior(theta, on_plane(kernel))
    expected = [log_likelihood(kernel, each, X, Y, noise_var) for each in theta]
    plain = np.array(expected) + N / 2 * np.log(2 * np.pi)
    np.testing.assert_allclose(ours.density(theta), plain + prior, rtol=1e-9)
    np.testing.assert_allclose(ours.density(theta, 0.3), 0.3 * plain + prior, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_log_prior_is_the_documented_one(kernel: str) -> None:
    theta = thetas(kernel)
    gaps = log_prior(theta, on_plane(kernel))[0] - [scipy_log_prior(each) for each in theta]
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)


@pytest.mark.parametrize("prior", [PRIOR, PAPER], ids=["default", "paper"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_slope_against_central_differences(kernel: str, prior: Prior) -> None:
    """Of all data, of one point and of none; the paper's log-uniform priors inside and outside."""
    # Differences err by step²/6·f‴ + eps·f/step, some 1e-9 for values and slopes of order 10.
    for n in (N, 1, 0):
        ours = Likelihood(Data(X[:n], Y[:n], KNOWN[:n]), on_plane(kernel, prior))
        theta = thetas(kernel)
        outside = theta[:1].copy()
        outside[:, D : D + 2] += 4.9, 3.2
        theta = np.concatenate([theta, outside])
        for power in (1.0, 0.3):
            value, slope = ours.slope(theta, power)
            np.testing.assert_array_equal(value, ours.density(theta, power))
            for i, e in enumerate(STEP * np.eye(theta.shape[1])):
                ends = [ours.density(theta + s * e, power) for s in (1, -1)]
                difference = (ends[0] - ends[1]) / (2 * STEP)
                np.testing.assert_allclose(slope[:, i], difference, rtol=1e-7, atol=1e-6)


def test_columns_share_the_length_scale_of_their_parameter() -> None:
    """Two columns of one parameter have one length scale: as with two equal ones."""
    data = Data(X, Y, KNOWN)
    short, long = np.array([[-1.0, 0.1, -3.0, 0.2]]), np.array([[-1.0, -1.0, 0.1, -3.0, 0.2]])
    one, two = (Model("rbf", PRIOR, columns) for columns in ((0, 0), (0, 1)))
    gaps = [
        Likelihood(data, model).density(theta) - log_prior(theta, model)[0]
        for theta, model in ((short, one), (long, two))
    ]
    assert gaps[0] == pytest.approx(gaps[1])


def test_impossible_hyperparameters_have_no_density() -> None:
    ours = Likelihood(Data(X, Y, KNOWN), on_plane())
    equal = Likelihood(Data(X[[0, 0]], Y[:2], np.zeros(2)), on_plane())
    bad = np.zeros((4, 5))
    bad[0, 2], bad[1, 1], bad[2, 0] = 800.0, np.nan, -800.0
    value, slope = ours.slope(bad)
    np.testing.assert_array_equal(ours.density(bad), value)
    np.testing.assert_array_equal(np.isneginf(value), [True, True, True, False])
    np.testing.assert_array_equal(slope.any(axis=1), [False, False, False, True])
    assert equal.density(np.zeros((1, 5))) == -np.inf  # a point twice, both without noise


def test_unpacking() -> None:
    hypers = unpack(THETA, on_plane())
    np.testing.assert_allclose(hypers.lengthscale, np.exp(THETA[:, :2]))
    np.testing.assert_allclose(hypers.outputscale, np.exp(THETA[:, 2]))
    np.testing.assert_allclose(hypers.noise, 1e-3 + np.exp(THETA[:, 3]))
    np.testing.assert_allclose(hypers.mean, 0.5 * THETA[:, 4])
    assert np.all(np.asarray(unpack(THETA, on_plane(prior=PAPER)).mean) == 0)
    assert np.all(np.asarray(hypers.rough) == 1)  # of no use to this kernel
    share = np.asarray(unpack(thetas("mixed"), on_plane("mixed")).rough)
    np.testing.assert_allclose(share, 1 / (1 + np.exp(-4 * ROUGH[:, 0])))


# --- HMC ----------------------------------------------------------------------------------------

CURVED = Prior(lengthscale=Gamma(2.5, 5.0), outputscale=LogNormal(1.0, 0.7))
ALONE = Model("rbf", CURVED, (0,))
NOTHING = Data(np.zeros((0, 1)), np.zeros(0), np.zeros(0))


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
        log_prior(position, ALONE)[0],
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
        chains, mixing = refresh(stream, chains, NOTHING, model=ALONE, moves=moves, gain=gain)
    return chains, mixing


def test_refresh_leaves_its_target_invariant() -> None:
    """Without data the target is the prior: Independent chains start in it, and stay in it.

    Steps are long, so that a fifth of the moves is refused and the acceptance step matters.
    """
    position = exact_prior(np.random.default_rng(1), CHAINS)
    moved, mixing = moved_often(0, chains_at(position, 1.0))
    assert 0.5 < float(mixing.acceptance) < 0.97
    assert float(mixing.effective) == pytest.approx(CHAINS)
    assert min(distances(np.asarray(moved.position))) > 1e-3
    assert np.mean(np.asarray(moved.position) == position) < 0.01  # they did move
    assert float(moved.step_size) == 1.0  # a gain of 0 adapts nothing


def test_refresh_finds_its_target() -> None:
    """From a start that is too narrow and off centre, 24 transitions reach the prior."""
    position = exact_prior(np.random.default_rng(2), CHAINS) * 0.3 + 0.5
    assert max(distances(position)) < 1e-10
    chains = chains_at(position, 0.5)
    # The reweighting needs densities that agree with the start; make it a no-op instead.
    for i in range(3):
        chains = replace(chains, log_density=log_prior(chains.position, ALONE)[0])
        chains, mixing = moved_often(i, chains, times=8)
    assert min(distances(np.asarray(chains.position))) > 1e-3
    assert float(mixing.rhat) < 1.2
    assert float(mixing.divergences) == 0
    np.testing.assert_array_equal(chains.recent[:, -1], chains.position)
    np.testing.assert_allclose(chains.log_density, log_prior(chains.position, ALONE)[0], rtol=1e-9)


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
    assert float(mixing.rhat) > 3


def test_adaptation_aims_at_its_acceptance() -> None:
    """A step accepted too often grows, and the mass follows the spread of the draws."""
    position = exact_prior(np.random.default_rng(1), CHAINS)
    moved, mixing = moved_often(0, chains_at(position, 0.1), times=1, gain=1.0)
    assert float(mixing.acceptance) > 0.9
    assert float(moved.step_size) == pytest.approx(0.1 * np.exp(float(mixing.acceptance) - 0.8))
    last = np.asarray(moved.recent)[:, -8:].reshape(-1, position.shape[1])
    expected = 0.5 + MASS_GAIN * (np.clip(last.var(0), 1e-3, 4.0) - 0.5)
    np.testing.assert_allclose(moved.inverse_mass, expected, rtol=1e-10)


LINE = RNG.uniform(size=(7, 1))
VALUES = np.sin(6 * LINE[:, 0]) + 0.1 * RNG.normal(size=7)
ON_LINE = Model("matern52", PRIOR, (0,))


@pytest.fixture(scope="module")
def reference() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance of θ given all of LINE, by importance sampling from the prior, with errors.

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
    mean_error = np.sqrt(w**2 @ squares)
    variance_error = np.sqrt(w**2 @ (squares - variance) ** 2)
    return mean, variance, mean_error, variance_error


RUNS, SETS = 3, 64


def error(runs: np.ndarray) -> np.ndarray:
    """The standard error of the mean over (run, chain).

    That of independent chains or, where a run's chains share ancestors and it is larger, that of
    independent runs.
    """
    chains = runs.std((0, 1)) / np.sqrt(runs[..., 0].size)
    whole = runs.mean(1).std(0, ddof=1) / np.sqrt(len(runs))
    return np.asarray(np.maximum(chains, whole))


def agree(
    runs: np.ndarray, reference: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
) -> None:
    """Moments over independent runs (run, chain, θ) against the reference.

    4.5 standard errors, in 8 comparisons.
    """
    mean, variance, mean_error, variance_error = reference
    for draws, truth, its_error in (
        (runs, mean, mean_error),
        ((runs - mean) ** 2, variance, variance_error),
    ):
        gap = np.abs(draws.mean((0, 1)) - truth)
        assert np.all(gap < 4.5 * np.hypot(error(draws), its_error))


@pytest.fixture(scope="module")
def cold_runs() -> list[Chains]:
    """Cold starts on the first four points."""
    data = Data(LINE[:4], VALUES[:4], np.full(4, np.nan))
    return [cold_start(Stream.of(i), SETS, data, ON_LINE, SETS // 2)[0] for i in range(RUNS)]


def test_a_cold_start_draws_from_the_posterior(
    reference: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    data = Data(LINE, VALUES, np.full(7, np.nan))
    runs, rhats = [], []
    for i in range(RUNS):
        chains, mixing = cold_start(Stream.of(100 + i), SETS, data, ON_LINE, SETS // 2)
        runs.append(np.asarray(chains.position))
        rhats.append(float(mixing.rhat))
        assert 0.6 < float(mixing.acceptance) <= 1
    agree(np.stack(runs), reference)
    assert np.median(rhats) < 1.3


def test_warm_chains_draw_from_it_too(
    cold_runs: list[Chains],
    reference: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Three more points, one at a time, each followed by a few refreshes that move half of them."""
    runs = []
    for i, chains in enumerate(cold_runs):
        for n in (5, 6, 7):
            data = Data(LINE[:n], VALUES[:n], np.full(n, np.nan))
            for turn in range(4):
                chains, _ = refresh(
                    Stream.of(i).child(n, turn),
                    chains,
                    data,
                    model=ON_LINE,
                    moves=SETS // 2,
                    gain=0.1,
                )
        runs.append(np.asarray(chains.position))
    agree(np.stack(runs), reference)


@pytest.mark.parametrize("every", [1, 9])
def test_chains_follow_a_long_search(every: int) -> None:
    """Forty points, one at a time or nine, an eighth of the chains moved a point: as from cold."""
    rng = np.random.default_rng(0)
    line = rng.uniform(size=(40, 1))
    values = np.sin(6 * line[:, 0]) + 0.1 * rng.normal(size=40)

    def data(n: int) -> Data:
        return Data(line[:n], values[:n], np.full(n, np.nan))

    followed, cold = [], []
    for i in range(RUNS):
        chains, _ = cold_start(Stream.of(i), SETS, data(4), ON_LINE, SETS // 2)
        for n in range(5, 41):
            stream, seen = Stream.of(i).child(n), data(4 + -(-(n - 4) // every) * every)
            chains, _ = refresh(stream, chains, seen, model=ON_LINE, moves=SETS // 8, gain=0.1)
        followed.append(chains.position)
        fresh, _ = cold_start(Stream.of(50 + i), SETS, data(40), ON_LINE, SETS // 2)
        cold.append(fresh.position)
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

    def data(n: int) -> Data:
        return Data(line[:n], values[:n], np.full(n, np.nan))

    density = Likelihood(data(8), ON_LINE).density(position)
    chains = replace(chains_at(position, 1e-3), log_density=density, inverse_mass=np.full(4, 1e-3))
    for n in range(9, 21):
        chains, mixing = refresh(Stream.of(n), chains, data(n), model=ON_LINE, moves=12, gain=0.0)
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
    model = on_plane("mixed", Prior(noise_floor=1e-12))
    theta = thetas("mixed")
    recent = np.repeat(theta[:, None] + 0.1, WINDOW, axis=1)
    chains = Chains(theta, np.zeros(4), np.zeros(4), np.zeros(4, int), 0.2, np.ones(D + 4), recent)
    shifted = rescale(chains, (scale / new_scale, (loc - new_loc) / new_scale), model)
    assert shifted is not None
    for old, new in (
        (chains.position, shifted.position),
        (chains.recent[:, 5], shifted.recent[:, 5]),
    ):
        before, after = unpack(old, model), unpack(new, model)
        np.testing.assert_allclose(after.lengthscale, before.lengthscale)
        np.testing.assert_array_equal(after.rough, before.rough)
        for name in ("outputscale", "noise"):
            raw = np.asarray(getattr(before, name)) * scale**2
            np.testing.assert_allclose(np.asarray(getattr(after, name)) * new_scale**2, raw)
        raw = loc + scale * np.asarray(before.mean)
        np.testing.assert_allclose(new_loc + new_scale * np.asarray(after.mean), raw)


def test_rescaled_chains_see_the_same_likelihood() -> None:
    """But for n log ratio, the same for all: the reweighting sees only what the prior says."""
    ratio, offset = 1.7, -0.4
    model = on_plane(prior=Prior(noise_floor=1e-12))
    recent = np.repeat(THETA[:, None], WINDOW, axis=1)
    chains = Chains(THETA, np.zeros(4), np.zeros(4), np.zeros(4, int), 0.2, np.ones(5), recent)
    shifted = rescale(chains, (ratio, offset), model)
    assert shifted is not None
    unknown = np.full(N, np.nan)
    old, new = Data(X, Y, unknown), Data(X, ratio * Y + offset, unknown)
    before, after = (
        Likelihood(data, model).density(theta) - log_prior(theta, model)[0]
        for theta, data in ((chains.position, old), (shifted.position, new))
    )
    np.testing.assert_allclose(after, before - N * np.log(ratio), rtol=1e-9)


@pytest.mark.parametrize("shift", [(0.3, 0.0), (3.1, 0.0), (1.0, 2.1), (1.0, -2.1)])
def test_a_scaling_too_far_away_is_not_followed(shift: tuple[float, float]) -> None:
    assert rescale(numbered(4), shift, ALONE) is None
    assert rescale(numbered(4), (1.0, 0.0), ALONE) is not None


def test_starts_spread_over_the_prior() -> None:
    chains = start_chains(Stream.of(0), 4000, on_plane("mixed"))
    centre = np.array([2**0.5 + np.log(2) / 2] * 2 + [0.0, -4.0, 0.0, 0.0])
    spread = np.array([3**0.5, 3**0.5, 0.7, 1.0, 1.0, 1.0])
    z = (np.asarray(chains.position) - centre) / spread
    clipped = np.clip(np.random.default_rng(0).normal(size=100_000), -2, 2).std()
    assert np.all(np.abs(z.mean(0)) < 4 / np.sqrt(4000))
    np.testing.assert_allclose(z.std(0), clipped, rtol=4 / np.sqrt(2 * 4000))


@pytest.mark.parametrize("kernel", KERNELS)
def test_map_fit_finds_the_mode(kernel: str) -> None:
    """Against many starts of a derivative-free search of the same density in SciPy."""
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    y = (y - y.mean()) / y.std()
    unknown = np.full(N, np.nan)

    def negative(theta: np.ndarray) -> float:
        if np.any(np.abs(theta) > 20):
            return 1e10
        return -log_likelihood(kernel, theta, X, y, unknown) - scipy_log_prior(theta)

    model = on_plane(kernel)
    found = map_fit(Data(X, y, unknown), model)
    rng = np.random.default_rng(0)
    starts = rng.normal(size=(6, 6)) * [1.5, 1.5, 0.7, 1.0, 0.5, 1.0] + [0, 0, 0, -4.0, 0, 0]
    starts = starts[:, : model.k]
    best = min(scipy.optimize.minimize(negative, s, method="L-BFGS-B").fun for s in starts)
    assert negative(found) < best + 1e-5
    restarted = map_fit(Data(X, y, unknown), model, found)
    assert negative(restarted) <= negative(found) + 1e-9
