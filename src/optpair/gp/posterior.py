"""Posteriors of one outcome, under M hyperparameter sets at once.

    m(x) = μ + k(x, X) (K + Σ)⁻¹ (y − μ)
    s(x) = k(x, x) − k(x, X) (K + Σ)⁻¹ k(X, x)        (noiseless)

Σ is diagonal: the set's noise σ², or the known noise variance of an observation. C⁻¹ of
K + Σ = CCᵀ is kept explicitly: screening thousands of points is then matrix products only, and a
row can be appended in O(n²).

Nothing here standardises or flips a sign: hyperparameters, points and values share whatever units
they are passed in, noise and output scale are variances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.kernels import Columns, Covariance, Kernel, Matern52, as_kernel
from optpair.gp.kernels.base import Between, Points, Target
from optpair.gp.kernels.related import Links, LoadedTarget
from optpair.gp.likelihood import Sample, joined
from optpair.gp.linalg import JITTERS, inverse_factor
from optpair.gp.noise import GROWTH, Growing, Growth, Runs
from optpair.gp.process import SHARED
from optpair.runtime.shapes import Bool, Float
from optpair.runtime.threads import engine_work

STRIP, STRIPS = 64, 4  # rows of C⁻¹ at least, and how many strips at most
BLOCK, FEWEST = 256, 16  # points looked at together, at most and at least,
ROWS = 2**17  # and entries of their rows of covariances, which stay in cache
TOGETHER = 2_000_000  # entries of Gram matrices made together
FURTHEST = 1e4  # length scales from the origin: beyond, r² loses more than 1e-7 to round-off
SMALLEST = 1e-12  # of the output scale: below this a variance is round-off


@dataclass(frozen=True)
class Posterior:
    """A GP conditioned on data, under M hyperparameter sets.

    With pending points each of F sample paths supplies values of its own there (fantasies), so
    there are F means that share one factor; otherwise F = 1.
    """

    covariance: Covariance
    mean: Float[np.ndarray, " M"]
    noise: Float[np.ndarray, " M"]  # of a future query, at the target
    X: Float[np.ndarray, "n D"]
    noise_var: Float[np.ndarray, "M n"]  # at each observation
    residual: Float[np.ndarray, "M F n"]  # y − μ
    inverse_factor: Float[np.ndarray, "M n n"]
    weights: Float[np.ndarray, "M F n"]  # (K + Σ)⁻¹ (y − μ)
    jitter: Float[np.ndarray, " M"]  # added to the diagonal, relative to it
    runs: Runs | None = None  # whose observations share noise
    links: Links | None = None  # of the first rows, where they are of earlier studies
    growing: Growing | None = None  # how the noise of a future query grows away from the target

    @property
    def before(self) -> int:
        """The number of rows of earlier studies, which come first."""
        return 0 if self.links is None else self.links.count

    @property
    def told(self) -> Float[np.ndarray, "t D"]:
        """The points of the present study's rows."""
        return self.X[self.before :]

    @property
    def sets(self) -> int:
        """M, the number of hyperparameter sets."""
        return len(self.mean)

    @property
    def fantasies(self) -> int:
        """F, the number of means that share a factor."""
        return int(self.residual.shape[1])

    @property
    def dimensions(self) -> int:
        """D, the number of columns of a point."""
        return int(self.X.shape[1])

    @property
    def outputscale(self) -> Float[np.ndarray, " M"]:
        """a, the prior variance of each set."""
        return self.covariance.outputscale

    @property
    def floor(self) -> Float[np.ndarray, " M"]:
        """The smallest value that a variance is taken to have."""
        return SMALLEST * self.outputscale

    @cached_property
    def target(self) -> Target:
        """The data, as points that covariances are taken with."""
        target = self.covariance.target(self.X)
        return target if self.links is None else LoadedTarget(target, self.links)

    @property
    def sound(self) -> Bool[np.ndarray, " M"]:
        """The sets whose matrix was factorised, on some rung of the ladder."""
        return np.isfinite(self.inverse_factor).all((1, 2))

    def at(self, X: Points) -> Query:
        """The posterior at points, and its derivatives there."""
        between = self.target.between(X)
        return Query(self, X, between, self.whiten(between.K))

    def noise_at(self, X: Points) -> Float[np.ndarray, "M _"]:
        """The noise of future queries at points; one for all where it does not grow."""
        noise = self.noise[:, None]
        return noise if self.growing is None else noise * self.growing.factor(X)

    def pull_noise(
        self, X: Points, by_noise: Float[np.ndarray, "M q"]
    ) -> Float[np.ndarray, "q D"] | float:
        """From derivatives by the noise of future queries to those by each point's coordinates."""
        if self.growing is None:
            return 0.0
        return self.growing.pull(X, by_noise * self.noise_at(X))

    def whiten(self, K: Float[np.ndarray, "M q n"]) -> Float[np.ndarray, "M q n"]:
        """C⁻¹k for each row k, strip by strip of C⁻¹, without what is right of its diagonal."""
        n = K.shape[-1]
        if n <= STRIP:
            return np.asarray(K @ self.inverse_factor.mT)
        width = -(-n // min(-(-n // STRIP), STRIPS))
        A = np.empty_like(K)
        for start in range(0, n, width):
            end = min(start + width, n)
            strip = self.inverse_factor[:, start:end, :end]
            np.matmul(K[..., :end], strip.mT, out=A[..., start:end])
        return A

    def unwhiten(self, A: Float[np.ndarray, "M q n"]) -> Float[np.ndarray, "M q n"]:
        """C⁻ᵀa for each row a: the transpose of `whiten`."""
        n = A.shape[-1]
        if n <= STRIP:
            return np.asarray(A @ self.inverse_factor)
        width = -(-n // min(-(-n // STRIP), STRIPS))
        K = np.empty_like(A)
        for start in range(0, n, width):
            end = min(start + width, n)
            strip = self.inverse_factor[:, start:, start:end]
            np.matmul(A[..., start:], strip, out=K[..., start:end])
        return K

    def solve(self, residual: Float[np.ndarray, "M F n"]) -> Float[np.ndarray, "M F n"]:
        """(K + Σ)⁻¹ r = C⁻ᵀ (C⁻¹ r) for each row r."""
        return self.unwhiten(self.whiten(residual))

    def moments(
        self, X: Float[np.ndarray, "q D"]
    ) -> tuple[Float[np.ndarray, "M F q"], Float[np.ndarray, "M q"]]:
        """m(x) of each fantasy, and s(x), a block of points at a time."""
        means = np.empty((self.sets, self.fantasies, len(X)))
        variance = np.empty((self.sets, len(X)))
        for block in self.blocks(len(X)):
            query = self.at(X[block])
            means[..., block], variance[..., block] = query.means, query.variance
        return means, variance

    def blocks(self, count: int) -> Iterator[slice]:
        """Slices of that many points: the work arrays of one slice stay in cache."""
        size = int(np.clip(ROWS // (self.sets * max(len(self.X), 1)), FEWEST, BLOCK))
        return (slice(i, i + size) for i in range(0, count, size))

    def means_at_data(self) -> Float[np.ndarray, "M F t"]:
        """m(X) without a covariance: with w the weights, K w = (y − μ) − Σ w."""
        own = slice(self.before, None)
        prior, noise_var = self.covariance.diagonal(self.told), self.noise_var[:, own]
        diagonal = noise_var + self.jitter[:, None] * (prior + noise_var)
        noise = diagonal[:, None] * self.weights[..., own]
        if self.runs is not None:
            noise = noise + (self.weights @ self.runs.covariance(self.noise_var))[..., own]
        return np.asarray(self.mean[:, None, None] + self.residual[..., own] - noise)

    def left_out(self) -> tuple[Float[np.ndarray, "M t"], Float[np.ndarray, "M t"]]:
        """Mean and variance of each observation, noise included, given all the others.

        With c the diagonal of (K + Σ)⁻¹ and w the weights, under the same hyperparameters,

            (L1)  m_i = y_i − w_i/c_i,    s_i = 1/c_i

        which is what fitting n times, without one observation each, would give.
        """
        own = slice(self.before, None)
        precision = np.sum(self.inverse_factor[..., own] ** 2, axis=1)  # C⁻ᵀC⁻¹'s diagonal
        y = self.values
        return y - self.weights[..., own].mean(1) / precision, 1 / precision  # (L1)

    @property
    def values(self) -> Float[np.ndarray, "M t"]:
        """The values of the present study's rows, averaged over fantasies."""
        return np.asarray(self.mean[:, None] + self.residual[..., self.before :].mean(1))

    def best_data(self, count: int) -> Float[np.ndarray, "A D"]:
        """The observed points of highest posterior mean, averaged over sets; repeated if few.

        Without data there are none.
        """
        order = np.argsort(-self.means_at_data().mean((0, 1)), kind="stable")
        return self.told[np.resize(order, count if len(order) else 0)]

    @engine_work
    def predict(self, X: ArrayLike) -> tuple[Float[np.ndarray, "M q"], Float[np.ndarray, "M q"]]:
        """Mean and variance of the noiseless f at the points X: (M, q) each."""
        means, variance = self.moments(as_points(X, self.dimensions))
        return means.mean(1), variance

    @engine_work
    def joint(self, X: ArrayLike) -> tuple[Float[np.ndarray, "M q"], Float[np.ndarray, "M q q"]]:
        """Mean and joint covariance of the noiseless f at the points X: (M, q) and (M, q, q)."""
        points = as_points(X, self.dimensions)
        query = self.at(points)
        prior = self.covariance.between(points, points).K
        return query.means.mean(1), prior - query.A @ query.A.mT

    def with_fantasies(self, count: int) -> Posterior:
        """The same, with `count` means per set, which may differ from then on."""
        shape = (self.sets, count, len(self.X))
        residual, weights = (np.broadcast_to(v, shape) for v in (self.residual, self.weights))
        return replace(self, residual=residual, weights=weights)

    def some_fantasies(self, count: int) -> Posterior:
        """The first `count` of its fantasies."""
        return replace(self, residual=self.residual[:, :count], weights=self.weights[:, :count])

    def of_sets(self, chosen: slice | np.ndarray) -> Posterior:
        """Of some of the sets."""
        names = ("mean", "noise", "noise_var", "residual", "inverse_factor", "weights", "jitter")
        own = {name: getattr(self, name)[chosen] for name in names}
        runs = None if self.runs is None else self.runs.of_sets(chosen)
        links = None if self.links is None else self.links.of_sets(chosen)
        growing = None if self.growing is None else self.growing.of_sets(chosen)
        covariance = self.covariance.of_sets(chosen)
        return replace(self, covariance=covariance, runs=runs, links=links, growing=growing, **own)

    def append(self, x: Float[np.ndarray, " D"], values: Float[np.ndarray, "M F"]) -> Posterior:
        """Add one observation, with the noise of a future query.

        C gains the row (c, γ) with c = C⁻¹k(X, x) and γ² = k(x, x) + σ² − c·c; its inverse gains
        (−cᵀC⁻¹, 1)/γ. O(n²), no refactorisation.
        """
        M, n = self.sets, len(self.X)
        c = self.whiten(self.target.between(x[None]).K)
        noise = self.noise_at(x[None])
        diagonal = self.covariance.diagonal(x[None])[:, 0] + noise[:, 0]
        left = (1 + self.jitter) * diagonal - np.sum(c[:, 0] ** 2, -1)
        pivot = np.sqrt(np.maximum(left, JITTERS[1] * diagonal))
        inverse = np.zeros((M, n + 1, n + 1))
        inverse[:, :n, :n] = self.inverse_factor
        inverse[:, n, :n] = -self.unwhiten(c)[:, 0] / pivot[:, None]
        inverse[:, n, n] = 1 / pivot
        old = np.broadcast_to(self.residual, (M, values.shape[1], n))
        residual = np.concatenate([old, (values - self.mean[:, None])[..., None]], -1)
        grown = replace(
            self,
            X=np.concatenate([self.X, x[None]]),
            noise_var=np.concatenate([self.noise_var, noise], -1),
            residual=residual,
            inverse_factor=inverse,
            weights=residual,
            runs=None if self.runs is None else self.runs.and_another(),
        )
        return replace(grown, weights=grown.solve(residual))

    def __repr__(self) -> str:
        return f"Posterior({self.sets} sets, {len(self.X)} observations in {self.dimensions}-D)"


@dataclass(frozen=True)
class Query:
    """The posterior at q points: means, variances, and what they pull back to the points."""

    posterior: Posterior
    X: Points
    between: Between
    A: Float[np.ndarray, "M q n"]  # C⁻¹k(X, x)

    @property
    def means(self) -> Float[np.ndarray, "M F q"]:
        """m(x), one for each fantasy."""
        weights, K = self.posterior.weights, self.between.K
        return np.asarray(self.posterior.mean[:, None, None] + weights @ K.mT)

    @property
    def variance(self) -> Float[np.ndarray, "M q"]:
        """s(x)."""
        prior = self.posterior.covariance.diagonal(self.X)
        return np.asarray(np.maximum(prior - np.vecdot(self.A, self.A), 0.0))

    def pull(
        self,
        by_means: Float[np.ndarray, "M F q"] | None = None,
        by_variance: Float[np.ndarray, "M q"] | None = None,
        by_whitened: Float[np.ndarray, "M q n"] | None = None,
    ) -> Float[np.ndarray, "M q D"]:
        """From derivatives by the moments, and by C⁻¹k, to those by each point's coordinates."""
        by_A = by_whitened
        if by_variance is not None:
            through = self.A * (-2 * by_variance)[..., None]
            by_A = through if by_A is None else by_A + through
        by_K = 0.0 if by_A is None else self.posterior.unwhiten(by_A)
        if by_means is not None:
            by_K = by_K + by_means.mT @ self.posterior.weights
        return self.between.pull(np.asarray(by_K))


def as_points(X: ArrayLike, dimensions: int) -> Float[np.ndarray, "q D"]:
    """Points as an array of floats, or an error that says which shape is accepted."""
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != dimensions:
        raise ValueError(f"points must have shape (q, {dimensions}), not {points.shape}")
    return points


def fit(
    hypers: Hyperparameters,
    sample: Sample,
    *,
    kernel: Kernel,
    columns: Columns,
    growth: Growth | None = None,
) -> Posterior:
    """The posterior under each set.

    `columns[c]` is the parameter whose length scale column c has. The noise of a future query is
    the inferred one or, where every observation's is known, their median. The inferred one is that
    at the target, and grows from there as (L4) says, if there is a `growth` and its rate.
    """
    covariance = kernel.bind(hypers, columns)
    links = kernel.links(covariance, hypers)
    given = np.isfinite(sample.noise_var)
    known = len(given) > 0 and given.all()
    noise = np.full(hypers.sets, np.median(sample.noise_var)) if known else hypers.noise
    X, y, noise_var, run = joined(sample, kernel.given)
    n, M, given = len(y), hypers.sets, np.isfinite(noise_var)
    growing = None
    if growth is not None and GROWTH in hypers.own and not known:
        growing = Growing(growth, hypers.own[GROWTH])
    inferred = hypers.noise[:, None] * (1.0 if growing is None else growing.factor(X))
    noises = np.where(given, noise_var, inferred)
    diagonal = covariance.diagonal(X) + noises
    runs = None
    if run is not None and SHARED in hypers.own and len(np.unique(run)) < n:
        runs = Runs(run, hypers.own[SHARED])
    inverse, jitter = np.empty((M, n, n)), np.zeros(M)
    block = max(TOGETHER // max(n * n, 1), 1)
    for start in range(0, M if n else 0, block):
        some = slice(start, min(start + block, M))
        grams = covariance.of_sets(some).between(X, X).K
        grams[:, np.arange(n), np.arange(n)] = diagonal[some]
        if links is not None:
            links.of_sets(some).gram(grams)
            grams[:, np.arange(n), np.arange(n)] = diagonal[some]
        if runs is not None:
            grams += runs.of_sets(some).covariance(noises[some])
        for m, K in enumerate(grams, start):
            inverse[m], jitter[m] = inverse_factor(K)
    residual = (y - hypers.mean[:, None])[:, None]
    posterior = Posterior(
        *(covariance, hypers.mean, noise, X, noises, residual, inverse, residual, jitter),
        *(runs, links, growing),
    )
    return replace(posterior, weights=posterior.solve(residual))


def check_factor(posterior: Posterior) -> None:
    """Raise if a set's matrix could not be factorised on any rung of the ladder."""
    bad = ~posterior.sound
    if bad.any():
        raise FloatingPointError(
            f"the covariance of hyperparameter set(s) {np.flatnonzero(bad).tolist()} is not "
            f"positive definite even with a relative jitter of {JITTERS[-1]:g}; give a larger "
            "noise or shorter length scales"
        )


@engine_work
def condition(
    hypers: Hyperparameters,
    X: ArrayLike,
    y: ArrayLike,
    kernel: str | Kernel = Matern52(),  # noqa: B008
    noise_var: ArrayLike | None = None,
) -> Posterior:
    """The posterior given points X (n, d) and values y (n,), under each set of `hypers`.

    Nothing is standardised: `hypers`, `X` and `y` share whatever units are passed, but the origin
    must not be more than ten thousand length scales away from X.

    Args:
        hypers: M sets of hyperparameters.
        X: points, (n, d).
        y: values to be maximised, (n,).
        kernel: a name (`rbf`, `matern52`, `mixed`, `additive`) or a `Kernel`.
        noise_var: (n,), replaces the sets' noise where it is finite.

    Examples:
        >>> hypers = Hyperparameters([[0.3]], [1.0], [1e-4], [0.0])
        >>> mean, var = condition(hypers, [[0.5]], [1.0]).predict([[0.5], [0.9]])
        >>> mean.shape, bool(mean[0, 0] > 0.99), bool(var[0, 1] > 0.5)
        ((1, 2), True, True)
    """
    sample = as_sample(X, y, noise_var, hypers.parameters)
    reach = np.max(np.abs(sample.X), axis=0, initial=0.0)
    away = float(np.max(reach / hypers.lengthscale, initial=0.0))
    if away > FURTHEST:
        raise ValueError(
            f"points are up to {away:.2g} length scales away from 0, where distances between them "
            "are lost in rounding; subtract one of them from all"
        )
    columns = tuple(range(hypers.parameters))
    posterior = fit(hypers, sample, kernel=as_kernel(kernel), columns=columns)
    check_factor(posterior)
    return posterior


def as_sample(X: ArrayLike, y: ArrayLike, noise_var: ArrayLike | None, dimensions: int) -> Sample:
    """Points, values and noise variances that fit together, or an error that says what does not."""
    points = as_points(X, dimensions)
    values = np.asarray(y, dtype=np.float64)
    noises = np.full(len(points), np.nan) if noise_var is None else np.asarray(noise_var, float)
    if values.shape != (len(points),) or noises.shape != (len(points),):
        raise ValueError(
            f"y and noise_var must have shape ({len(points)},), like the points, "
            f"not {values.shape} and {noises.shape}"
        )
    if not (np.all(np.isfinite(values)) and np.all(np.isfinite(points))):
        raise ValueError("points and y must be finite")
    if np.any(noises < 0):
        raise ValueError(f"noise_var must not be negative, as {np.nanmin(noises):g} is")
    return Sample(points, values, noises)
