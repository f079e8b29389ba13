"""Posterior sample paths by pathwise conditioning (Matheron's rule).

    f(x) = μ + g(x) + k(x, X) (K + Σ)⁻¹ (y − μ − g(X) − ε),   ε ~ N(0, Σ)

with g a draw from the prior in random Fourier features:

    g(x) = √(a/F) Σ_j u_j cos ω_j·x + w_j sin ω_j·x

The features carry only the prior; the data enter exactly, so a path is as sharp at the last
observation as at the first. The P paths of one set share their frequencies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from optpair.gp.kernels import Covariance, Frequencies
from optpair.gp.kernels.base import Target
from optpair.gp.kernels.related import Links, LoadedTarget
from optpair.gp.posterior import Posterior
from optpair.runtime.shapes import Float, Int, Num
from optpair.runtime.streams import Stream
from optpair.runtime.threads import engine_work

BLOCK = 1024  # points looked at together, of one set or of several: their features stay in cache
SINGLE, TINY = 1e-6, 1e-7  # of a: a noise that single precision can bear, and one too small for it
NODES, CHUNK = 4096, 8192  # angles with known sine and cosine, in one turn; entries at a time
_STEP = 2 * np.pi / NODES
_STEP_HIGH = float(np.rint(_STEP * 2.0**38)) / 2.0**38  # 29 bits: exact times 23 bits of steps
_STEP_LOW = (_STEP - _STEP_HIGH) + 2.4492935982947064e-16 / NODES  # with the rest of 2π
_COS, _SIN = np.cos(np.arange(NODES) * _STEP), np.sin(np.arange(NODES) * _STEP)


def cos_sin(radians: Num[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin; in double precision in less than half of NumPy's time, to 2e-14.

    From the nearest of 4096 known angles, by the addition theorems. Holds up to 1e4 radians;
    the error grows with the angle's own round-off beyond.
    """
    if radians.dtype == np.float32:
        return np.cos(radians), np.sin(radians)
    cosine, sine = np.empty(radians.shape), np.empty(radians.shape)
    flat, flat_cosine, flat_sine = radians.reshape(-1), cosine.reshape(-1), sine.reshape(-1)
    for i in range(0, flat.size, CHUNK):
        some = slice(i, i + CHUNK)
        steps = np.rint(flat[some] * (1 / _STEP))
        rest = flat[some] - steps * _STEP_HIGH
        rest -= steps * _STEP_LOW
        index = steps.astype(np.int64) & (NODES - 1)
        c, s = _COS.take(index), _SIN.take(index)
        square = rest * rest
        rest *= 1 - square * (1 / 6)  # the sine of what is left
        square *= 0.5  # 1 − its cosine
        flat_cosine[some] = c - (c * square + s * rest)
        flat_sine[some] = s - (s * square - c * rest)
    return cosine, sine


@dataclass(frozen=True)
class Paths:
    """P sample paths under each of M sets."""

    covariance: Covariance
    X: Num[np.ndarray, "n D"]
    mean: Num[np.ndarray, " M"]
    omega: Num[np.ndarray, "M F D"]  # frequencies, in radians per unit of x
    cosine: Num[np.ndarray, "M P F"]  # weights of the features, with √(a/F)
    sine: Num[np.ndarray, "M P F"]
    update: Num[np.ndarray, "M P n"]  # (K + Σ)⁻¹ (y − μ − g(X) − ε)
    links: Links | None = None  # of the first rows, where they are of earlier studies
    smooth: Num[np.ndarray, "M P n"] | None = None
    """The update of slightly smoother paths, for single precision; None if not needed."""

    @property
    def shape(self) -> tuple[int, int]:
        """(M, P)."""
        return self.update.shape[0], self.update.shape[1]

    @cached_property
    def target(self) -> Target:
        """The data, as points that covariances are taken with."""
        target = self.covariance.target(self.X)
        return target if self.links is None else LoadedTarget(target, self.links)

    def single(self) -> Paths:
        """The same paths in single precision, from 0 and in units of √a, for comparing points."""
        size = np.sqrt(self.covariance.outputscale)[:, None, None]
        update = self.update if self.smooth is None else self.smooth
        return Paths(
            self.covariance.single(),
            self.X.astype(np.float32),
            np.zeros(len(self.mean), np.float32),
            self.omega.astype(np.float32),
            (self.cosine / size).astype(np.float32),
            (self.sine / size).astype(np.float32),
            (update * size).astype(np.float32),
            None if self.links is None else self.links.single(),
        )

    def of_sets(self, chosen: slice | np.ndarray) -> Paths:
        """Of some of the sets."""
        names = ["mean", "omega", "cosine", "sine", "update"]
        names += [] if self.smooth is None else ["smooth"]
        own = {name: getattr(self, name)[chosen] for name in names}
        links = None if self.links is None else self.links.of_sets(chosen)
        return replace(self, covariance=self.covariance.of_sets(chosen), links=links, **own)

    @engine_work
    def at(self, X: Num[np.ndarray, "N D"]) -> Num[np.ndarray, "M P N"]:
        """Every path at the same points, some sets and a block of points at a time."""
        M, P = self.shape
        values = np.empty((M, P, len(X)), X.dtype)
        for sets in _together(M, len(X)):
            target = self.target.of_sets(sets)
            for i in range(0, len(X), BLOCK):
                block = X[i : i + BLOCK]
                at = values[sets, :, i : i + BLOCK]
                at[:] = _prior(self.omega[sets], self.cosine[sets], self.sine[sets], block)
                at += self.update[sets] @ target.between(block).K.mT
        return values + self.mean[:, None, None]

    def own(
        self, X: Num[np.ndarray, "M R D"], path: Int[np.ndarray, "M R"]
    ) -> tuple[Num[np.ndarray, "M R"], Num[np.ndarray, "M R D"]]:
        """Values and slopes of each set's paths `path` at points of their own."""
        sets = np.arange(len(X))[:, None]
        between = self.target.between(X)
        c, s = cos_sin(X @ self.omega.mT)
        u, w, update = self.cosine[sets, path], self.sine[sets, path], self.update[sets, path]
        values = np.vecdot(c, u) + np.vecdot(s, w)
        values += np.vecdot(between.K, update) + self.mean[:, None]
        c *= w
        s *= u
        c -= s  # the derivative by the angle
        return values, c @ self.omega + between.pull(update)

    def __repr__(self) -> str:
        M, P = self.shape
        return f"Paths({M} sets of {P}, in {self.X.shape[1]}-D)"


def _together(sets: int, points: int) -> Iterator[slice]:
    """The sets that are looked at together, where each has so many points."""
    size = max(BLOCK // max(points, 1), 1)
    return (slice(m, m + size) for m in range(0, sets, size))


def _prior(
    omega: Num[np.ndarray, "M F D"],
    cosine: Num[np.ndarray, "M P F"],
    sine: Num[np.ndarray, "M P F"],
    X: Num[np.ndarray, "N D"],
) -> Num[np.ndarray, "M P N"]:
    """g(x) of some sets' paths."""
    c, s = cos_sin(omega @ X.T)
    return cosine @ c + sine @ s


class Draws(NamedTuple):
    """The random numbers that paths are made of."""

    frequencies: Frequencies
    cosine: Float[np.ndarray, "M P F"]
    sine: Float[np.ndarray, "M P F"]
    white: Float[np.ndarray, "n M P"]  # of the observations' noise

    @classmethod
    def of(cls, stream: Stream, posterior: Posterior, *, paths: int, features: int) -> Draws:
        """For P paths per set, with `features` random features (half cosines, half sines)."""
        M, D, n = posterior.sets, posterior.dimensions, len(posterior.X)
        F = max(features // 2, 1)
        rng = stream.child(0).draw()
        return cls(
            Frequencies.of(rng, M, F, D),
            rng.standard_normal((M, paths, F)),
            rng.standard_normal((M, paths, F)),
            stream.child(1).draw().standard_normal((n, M, paths)),
        )


def draw(draws: Draws, posterior: Posterior) -> Paths:
    """The paths that these random numbers stand for."""
    covariance = posterior.covariance
    omega = covariance.frequencies(draws.frequencies)
    size = covariance.amplitudes(draws.frequencies)[:, None]
    return conditioned(posterior, omega, size * draws.cosine, size * draws.sine, draws.white)


def conditioned(
    posterior: Posterior,
    omega: Float[np.ndarray, "M F D"],
    cosine: Float[np.ndarray, "M P F"],
    sine: Float[np.ndarray, "M P F"],
    white: Float[np.ndarray, "n M P"],
) -> Paths:
    """The paths with these frequencies and weights, and these standard normal noises."""
    covariance = posterior.covariance
    normal, runs = np.moveaxis(white, 0, 2), posterior.runs
    noise = np.sqrt(posterior.noise_var)[:, None] * normal
    if runs is not None:
        noise = runs.drawn(posterior.noise_var, normal)
    prior = np.concatenate(
        [
            _prior(omega[sets], cosine[sets], sine[sets], posterior.X)
            for sets in _together(len(omega), len(posterior.X))
        ]
    )
    links = posterior.links
    if links is not None:
        links.load(prior)
        own = np.moveaxis(white[: links.count], 0, 2)
        noise[..., : links.count] = own @ links.root.mT
    update = posterior.solve(posterior.residual - prior - noise)
    smooth = _smoothed(posterior, update)
    mean = posterior.mean
    return Paths(covariance, posterior.X, mean, omega, cosine, sine, update, links, smooth)


def _smoothed(
    posterior: Posterior, update: Float[np.ndarray, "M P n"]
) -> Float[np.ndarray, "M P n"] | None:
    """The update if values were noisier by τ; None if they are noisy enough.

    Where values are nearly exact, the update is so large that its products with covariances have
    no digits left in single precision. With C = K + Σ and the update v, it is (1 + τ C⁻¹)⁻¹ v.
    """
    if np.all(posterior.noise_var >= TINY * posterior.outputscale[:, None]):
        return None
    tau = SINGLE * posterior.outputscale
    inverse = posterior.inverse_factor
    system = np.eye(len(posterior.X)) + tau[:, None, None] * (inverse.mT @ inverse)
    return np.asarray(np.linalg.solve(system, update.mT).mT)


@engine_work
def sample_paths(posterior: Posterior, paths: int, seed: int = 0, *, features: int = 1024) -> Paths:
    """Draw `paths` sample paths under each hyperparameter set.

    `features` counts the random features (half cosines, half sines). `sample.at(X)` are values at
    points (q, d), shape (M, P, q).
    """
    if paths < 1 or features < 2:
        raise ValueError(f"paths must be at least 1 and features 2, not {paths} and {features}")
    drawn = Draws.of(Stream.of(seed), posterior, paths=paths, features=features)
    return draw(drawn, posterior)
