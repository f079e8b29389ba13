"""Gaussian-process posteriors, batched over M hyperparameter sets.

    m(x) = μ + k(x, X) (K + Σ)⁻¹ (y − μ)
    s(x) = a − k(x, X) (K + Σ)⁻¹ k(X, x)        (noiseless)

Σ is diagonal: the set's noise σ², or the known noise variance of an observation. Rows of X may be
padding (`mask` false): their rows of K + Σ are the identity's, so that they change nothing.
C⁻¹ is kept explicitly: screening thousands of points is then matrix products only, and a row can
be appended in O(n²).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.spatial.distance import pdist, squareform

from optpair.gp import kernels
from optpair.gp.kernels import Correlation, Kernel, check_kernel
from optpair.runtime import Numbers, compiled, double, pytree

Values = Array | np.ndarray | Sequence[float] | Sequence[Sequence[float]]
SMALL_BLOCK = 32
STRIP, STRIPS = 64, 4  # rows at least, and how many at most
ROUND_OFF = 4 * float(np.finfo(np.float64).eps)  # of the diagonal, a row: no pivot is smaller
FURTHEST = 1e4  # length scales from the origin: beyond, r² loses more than 1e-7 to round-off
JITTERS = (0.0, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


@pytree
@dataclass(frozen=True)
class Hyperparameters:
    """M sets: length scales (M, d), output scale, noise (both variances) and mean, each (M,).

    `rough` (M,), from 0 to 1, is the share of Matérn-5/2 in the kernel `mixed`; 1 where it is left
    out. Other kernels have no use for it.

    >>> Hyperparameters(lengthscale=[[0.2, 0.3]], outputscale=[1.0], noise=[0.01], mean=[0.0]).sets
    1
    """

    lengthscale: Values
    outputscale: Values
    noise: Values
    mean: Values
    rough: Values | None = None

    def __post_init__(self) -> None:
        if self.rough is None:
            object.__setattr__(self, "rough", np.ones(np.shape(self.outputscale)))
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, jax.Array):
                value = np.asarray(value, dtype=np.float64)
                self._check(item.name, value, axes=2 if item.name == "lengthscale" else 1)
                object.__setattr__(self, item.name, value)

    def _check(self, name: str, value: np.ndarray, axes: int) -> None:
        sets = len(np.atleast_1d(np.asarray(self.lengthscale)))
        if value.ndim != axes or value.shape[0] != sets or value.size == 0:
            wanted = "(M, d)" if axes == 2 else f"(M,) = ({sets},)"
            raise ValueError(f"{name} must have shape {wanted}, not {value.shape}")
        if name == "rough" and not np.all((value >= 0) & (value <= 1)):
            raise ValueError(f"rough must be from 0 to 1, not {value.tolist()}")
        low = {"lengthscale": 0.0, "outputscale": 0.0, "noise": -np.finfo(float).tiny}
        if not np.all(np.isfinite(value)) or np.any(value <= low.get(name, -np.inf)):
            kind = "finite" if name == "mean" else "finite and positive"
            kind += " (or zero)" if name == "noise" else ""
            raise ValueError(f"{name} must be {kind}, not {value.tolist()}")

    @property
    def sets(self) -> int:
        """M, the number of sets."""
        return len(self.outputscale)


@pytree
@dataclass(frozen=True)
class Posterior:
    """A GP conditioned on data, under M hyperparameter sets.

    With pending points each of F sample paths supplies values of its own there (fantasies), so
    there are F means that share one factor; otherwise F = 1.
    """

    scale: Float[Array, "M D"]  # length scale of each column
    outputscale: Float[Array, " M"]
    mean: Float[Array, " M"]
    noise: Float[Array, " M"]  # of a future query
    X: Float[Array, "n D"]
    mask: Bool[Array, " n"]
    noise_var: Float[Array, "M n"]  # at each observation
    residual: Float[Array, "M F n"]  # y − μ, zero at padding
    inverse_factor: Float[Array, "M n n"]
    weights: Float[Array, "M F n"]  # (K + Σ)⁻¹ (y − μ)
    jitter: Float[Array, " M"]  # added to the diagonal, relative to it
    kernel: Correlation

    def covariance(self, X: Float[Array, "*b q D"]) -> Float[Array, "M q n"]:
        """k(x, X), zero at padding."""
        cross = kernels.cross(self.kernel, self.scale, self.outputscale, X, self.X)
        return cross * self.mask

    def prior_covariance(
        self, X: Float[Array, "*b q D"], Y: Float[Array, "*c p D"]
    ) -> Float[Array, "M q p"]:
        """k(X, Y)."""
        return kernels.cross(self.kernel, self.scale, self.outputscale, X, Y)

    def whiten(self, K: Float[Array, "M q n"]) -> Float[Array, "M q n"]:
        """C⁻¹k for each row k, by strips of C⁻¹: what is right of its diagonal need not be met."""
        n = K.shape[-1]
        if n == 0:
            return K
        width = -(-n // min(-(-n // STRIP), STRIPS))
        spans = [(start, min(start + width, n)) for start in range(0, n, width)]
        strips = [(self.inverse_factor[:, start:end, :end], end) for start, end in spans]
        parts = [K[..., :end] @ jnp.swapaxes(strip, -1, -2) for strip, end in strips]
        return jnp.concatenate(parts, -1)

    def means(self, K: Float[Array, "M q n"]) -> Float[Array, "M F q"]:
        """m(x) from the rows k(x, X), one for each fantasy."""
        return self.mean[:, None, None] + self.weights @ jnp.swapaxes(K, -1, -2)

    def means_at_data(self) -> Float[Array, "M F n"]:
        """m(X) without a covariance: with w the weights, K w = (y − μ) − Σ w."""
        diagonal = self.noise_var + self.jitter[:, None] * (
            self.outputscale[:, None] + self.noise_var
        )
        return self.mean[:, None, None] + self.residual - diagonal[:, None] * self.weights

    def variance(self, A: Float[Array, "M q n"]) -> Float[Array, "M q"]:
        """s(x) from the whitened rows A = C⁻¹k(X, x)."""
        return jnp.maximum(self.outputscale[:, None] - jnp.sum(A * A, -1), 0.0)

    def moments(
        self, X: Float[Array, "*b q D"]
    ) -> tuple[Float[Array, "M F q"], Float[Array, "M q"]]:
        """m(x) of each fantasy, and s(x)."""
        K = self.covariance(X)
        return self.means(K), self.variance(self.whiten(K))

    @double
    def predict(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the noiseless f at the points X: (M, q) each, as NumPy arrays."""
        points = _as_points(X, self.scale.shape[1])
        means, variance = _moments(self, points)
        return np.asarray(means).mean(1), np.asarray(variance)


@compiled()
def _moments(posterior: Posterior, X: Array) -> tuple[Array, Array]:
    return posterior.moments(X)


def _as_points(X: ArrayLike, dimensions: int) -> Array:
    points = jnp.asarray(np.asarray(X, dtype=np.float64))
    if points.ndim != 2 or points.shape[1] != dimensions:
        raise ValueError(f"points must have shape (q, {dimensions}), not {points.shape}")
    return points


def robust_cholesky(
    K: Float[Array, "M n n"],
) -> tuple[Float[Array, "M n n"], Float[Array, " M"]]:
    """Cholesky factors, climbing a jitter ladder in the sets that fail.

    Returns the factors and the jitter of each set, relative to its diagonal; a set that
    fails on the last rung keeps its NaN.
    """
    ladder = jnp.asarray(JITTERS)
    n = K.shape[-1]
    diagonal = jnp.diagonal(K, axis1=-2, axis2=-1)
    least = ROUND_OFF * n * diagonal

    def factor(rung: Array) -> tuple[Array, Array]:
        C = jnp.linalg.cholesky(K + (ladder[rung][:, None] * diagonal)[:, None] * jnp.eye(n))
        return C, ~jnp.all(jnp.diagonal(C, axis1=-2, axis2=-1) ** 2 > least, -1)

    def climb(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        rung = state[0] + state[2]
        return rung, *factor(rung)

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        return jnp.any(state[2] & (state[0] < len(JITTERS) - 1))

    def clipped(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        rung, C, failed = climb(state)
        return jnp.minimum(rung, len(JITTERS) - 1), C, failed

    start = jnp.zeros(K.shape[0], dtype=int)
    rung, C, _ = jax.lax.while_loop(unfinished, clipped, (start, *factor(start)))
    return C, ladder[rung]


def inverse_lower(C: Float[Array, "*M n n"]) -> Float[Array, "*M n n"]:
    """C⁻¹ of a lower triangular C, from small blocks up: matrix products, where LAPACK would crawl.

        [A 0; B D]⁻¹ = [A⁻¹ 0; −D⁻¹BA⁻¹ D⁻¹]

    All small blocks are inverted by one call: two at once, each batched, can lock XLA's threads up.
    """
    n = C.shape[-1]
    size, blocks = n, 1
    while size > SMALL_BLOCK:
        size, blocks = -(-size // 2), 2 * blocks
    extra = size * blocks - n
    if extra:  # the identity's rows below change nothing above
        C = jnp.pad(C, [(0, 0)] * (C.ndim - 2) + [(0, extra)] * 2)
        C = C + jnp.diag(jnp.arange(n + extra) >= n)
    diagonal = _blocks(C, size, range(blocks), range(blocks))
    eye = jnp.broadcast_to(jnp.eye(size), diagonal.shape)
    inverse = solve_triangular(diagonal, eye, lower=True)
    while blocks > 1:
        A, D = inverse[..., 0::2, :, :], inverse[..., 1::2, :, :]
        below = _blocks(C, size, range(1, blocks, 2), range(0, blocks, 2))
        B = -D @ (below @ A)
        inverse = jnp.block([[A, jnp.zeros_like(A)], [B, D]])
        size, blocks = 2 * size, blocks // 2
    return inverse[..., 0, :n, :n]


def inverse_factor(V: Float[Array, "*M k k"]) -> Float[Array, "*M k k"]:
    """L⁻¹ of V = LLᵀ, with jitter where V needs it."""
    k = V.shape[-1]
    return inverse_lower(robust_cholesky(V.reshape(-1, k, k))[0]).reshape(V.shape)


def _blocks(
    C: Float[Array, "*M n n"], size: int, rows: Iterable[int], columns: Iterable[int]
) -> Float[Array, "*M b s s"]:
    """Square blocks of a matrix, by their places in it."""
    places = [(i * size, j * size) for i, j in zip(rows, columns, strict=True)]
    return jnp.stack([C[..., i : i + size, j : j + size] for i, j in places], axis=-3)


def gram(
    kernel: Correlation,
    scale: Float[Array, "M D"],
    outputscale: Float[Array, " M"],
    noise_var: Float[Array, "M n"],
    X: Float[Numbers, "n D"],
    mask: Bool[Numbers, " n"],
) -> Float[Array, "M n n"]:
    """K + Σ, with the identity's rows at padding."""
    points, both = jnp.asarray(X), mask[:, None] & mask[None, :]
    K = jnp.where(both, kernels.cross(kernel, scale, outputscale, points, points), 0.0)
    return K + jnp.where(mask, noise_var, 1.0)[:, None, :] * jnp.eye(len(mask))


def fit(
    hypers: Hyperparameters,
    X: Float[np.ndarray, "n D"],
    y: Float[np.ndarray, " n"],
    noise_var: Float[np.ndarray, " n"],
    *,
    kernel: Kernel,
    columns: tuple[int, ...],
    size: int | None = None,
) -> Posterior:
    """The posterior, padded to `size` rows; NaN in `noise_var` means inferred noise.

    `columns[c]` is the parameter whose length scale column c has. The noise of a future query is
    the inferred one or, where every observation's is known, their median.
    """
    n, M = len(y), hypers.sets
    scale = np.asarray(hypers.lengthscale)[:, np.asarray(columns)]
    outputscale, mean = np.asarray(hypers.outputscale), np.asarray(hypers.mean)
    rough = np.asarray(hypers.rough)
    inferred, given = np.asarray(hypers.noise), np.isfinite(noise_var)
    noise = np.full(M, np.median(noise_var)) if n and given.all() else inferred
    rows = n if size is None else size
    points, noises = np.zeros((rows, X.shape[1])), np.repeat(inferred[:, None], rows, axis=1)
    points[:n], noises[:, :n] = X, np.where(given, noise_var, inferred[:, None])
    inverse, jitter = np.repeat(np.eye(rows)[None], M, axis=0), np.zeros(M)
    residual, weights = np.zeros((2, M, 1, rows))
    residual[:, 0, :n] = y - mean[:, None]
    for m in range(M if n else 0):
        own = Correlation(kernel, rough[m, ...])
        h, *_ = kernels.correlation_and_slopes(own, pdist(X / scale[m], "sqeuclidean"))
        K = square(outputscale[m] * h, outputscale[m] + noises[m, :n])
        factor, jitter[m] = _invert_factor(K)
        inverse[m, :n, :n] = factor
        weights[m, 0, :n] = (factor @ residual[m, 0, :n]) @ factor
    data = (points, np.arange(rows) < n, noises, residual, inverse, weights, jitter)
    of_sets = Correlation(kernel, rough if kernel == "mixed" else None)
    parts: Any = jax.device_put((scale, outputscale, mean, noise, *data, of_sets))
    return Posterior(*parts)


def square(
    pairs: Float[np.ndarray, " p"], diagonal: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n n"]:
    """The symmetric matrix with these entries for pairs, in pdist's order, and this diagonal."""
    n = len(diagonal)
    matrix = squareform(pairs, checks=False) if n > 1 else np.zeros((n, n))
    matrix.flat[:: n + 1] = diagonal
    return matrix


def _invert_factor(K: Float[np.ndarray, "n n"]) -> tuple[Float[np.ndarray, "n n"], float]:
    """C⁻¹ of K = CCᵀ, and the first relative jitter on the ladder that allows it; NaN if none."""
    diagonal = np.diagonal(K)
    for jitter in JITTERS:
        A = K.T.copy(order="F")
        A.flat[:: len(K) + 1] += jitter * diagonal
        C, failed = dpotrf(A, lower=1, overwrite_a=1)
        if not failed and np.all(np.diagonal(C) ** 2 > ROUND_OFF * len(K) * diagonal):
            return dtrtri(C, lower=1, overwrite_c=1)[0], jitter
    return np.full_like(K, np.nan), jitter


def _solve(posterior: Posterior) -> Posterior:
    """Weights from residuals: (K + Σ)⁻¹ r = C⁻ᵀ (C⁻¹ r)."""
    whitened = posterior.whiten(posterior.residual)
    return replace(posterior, weights=whitened @ posterior.inverse_factor)


def append(posterior: Posterior, x: Float[Array, " D"], values: Float[Array, "M F"]) -> Posterior:
    """Add one observation, with the noise of a future query, in the first padded row.

    C gains the row (c, γ) with c = C⁻¹k(X, x) and γ² = k(x, x) + σ² − c·c; its inverse gains
    (−cᵀC⁻¹, 1)/γ. O(n²), no refactorisation.
    """
    row = jnp.sum(posterior.mask)
    c = posterior.whiten(posterior.covariance(x[None]))[:, 0]
    diagonal = posterior.outputscale + posterior.noise
    left = (1 + posterior.jitter) * diagonal - jnp.sum(c * c, -1)
    pivot = jnp.sqrt(jnp.maximum(left, JITTERS[1] * diagonal))
    new = -jnp.einsum("mi,mij->mj", c, posterior.inverse_factor).at[:, row].set(-1.0)
    F = values.shape[1]
    sets, _, n = posterior.residual.shape
    residual = jnp.broadcast_to(posterior.residual, (sets, F, n))
    residual = residual.at[:, :, row].set(values - posterior.mean[:, None])
    grown = replace(
        posterior,
        X=posterior.X.at[row].set(x),
        mask=posterior.mask.at[row].set(True),
        noise_var=posterior.noise_var.at[:, row].set(posterior.noise),
        residual=residual,
        weights=residual,
        inverse_factor=posterior.inverse_factor.at[:, row].set(new / pivot[:, None]),
    )
    return _solve(grown)


@double
def condition(
    hypers: Hyperparameters,
    X: ArrayLike,
    y: ArrayLike,
    kernel: str = "mixed",
    noise_var: ArrayLike | None = None,
) -> Posterior:
    """The posterior given points X (n, d) and values y (n,), under each set of `hypers`.

    Nothing is standardised: `hypers`, `X` and `y` share whatever units are passed, but the origin
    must not be more than ten thousand length scales away from X. `kernel` is
    `rbf`, `matern52` or `mixed`, which is Matérn-5/2 where `hypers` say nothing of a rough share.
    `noise_var` (n,) replaces the sets' noise where it is finite.

    >>> hypers = Hyperparameters([[0.3]], [1.0], [1e-4], [0.0])
    >>> mean, var = condition(hypers, [[0.5]], [1.0]).predict([[0.5], [0.9]])
    >>> mean.shape, bool(mean[0, 0] > 0.99), bool(var[0, 1] > 0.5)
    ((1, 2), True, True)
    """
    d = int(np.shape(hypers.lengthscale)[1])
    points = _as_points(X, d)
    values = np.asarray(y, dtype=np.float64)
    noises = np.full(len(points), np.nan) if noise_var is None else np.asarray(noise_var, float)
    if values.shape != (len(points),) or noises.shape != (len(points),):
        raise ValueError(
            f"y and noise_var must have shape ({len(points)},), like the points, "
            f"not {values.shape} and {noises.shape}"
        )
    if not (np.all(np.isfinite(values)) and np.all(np.isfinite(np.asarray(points)))):
        raise ValueError("points and y must be finite")
    reach = np.max(np.abs(points), axis=0, initial=0.0)
    away = float(np.max(reach / np.asarray(hypers.lengthscale), initial=0.0))
    if away > FURTHEST:
        raise ValueError(
            f"points are up to {away:.2g} length scales away from 0, where distances between them "
            "are lost in rounding; subtract one of them from all"
        )
    if np.any(noises < 0):
        raise ValueError(f"noise_var must not be negative, as {np.nanmin(noises):g} is")
    posterior = fit(
        hypers,
        np.asarray(points),
        values,
        noises,
        kernel=check_kernel(kernel),
        columns=tuple(range(d)),
    )
    check_factor(posterior)
    return posterior


def check_factor(posterior: Posterior) -> None:
    """Raise if a set's matrix could not be factorised on any rung of the ladder."""
    bad = ~np.isfinite(np.asarray(posterior.inverse_factor)).all((1, 2))
    if bad.any():
        raise FloatingPointError(
            f"the covariance of hyperparameter set(s) {np.flatnonzero(bad).tolist()} is not "
            f"positive definite even with a relative jitter of {JITTERS[-1]:g}; give a larger "
            "noise or shorter length scales"
        )
