"""Earlier studies: functions that may resemble the one that is searched now.

Each of T earlier studies was about a function f_t of its own, which resembles the present one,
f_0, by a share r_t from 0 to 1. With g_1, …, g_T independent functions that are like f_0 before
data, and μ the mean of all,

    (R1)  f_t − μ = r_t (f_0 − μ) + √(1 − r_t²) g_t
    (R2)  cov(f_t(x), f_u(x')) = r_t r_u k(x, x') for t ≠ u,   k(x, x') for t = u,   r_0 = 1

A value of study t has, beside noise of its own, an offset of its own, N(0, c²). For the present
function a row of an earlier study is a row of data like any other. What it says of f_0 is scaled by
the loading r_t, and the rest is noise, which the rows of one study share:

    (R3)  cov(f_0(x), y_i) = r_t k(x, x_i)
    (R4)  noise of y_i and y_j of one study: (1 − r_t²) k(x_i, x_j) + c² + σ_t² [i = j]

Hyperparameters are those that predict the present values from the earlier ones, p(y | y_1, …,
y_T, θ): what the earlier values say about each other does not count. If nothing is related,
r_t = 0, that is p(y | θ), as if there had been no earlier studies.

If a study is related, the present length scales are about its own, which its values have shown.
With p the prior of log ℓ and q_t a normal density around those of study t,

    (R5)  log ℓ ~ π_0 p + Σ_t π_t q_t,   π_t ∝ r_t²,   π_0 ∝ Π_t (1 − r_t²)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from optpair.gp.hyperparameters import Block, Hyperparameters, Logit, Thetas
from optpair.gp.kernels.base import (
    Between,
    Columns,
    Covariance,
    Kernel,
    Pairwise,
    PairwiseFit,
    Points,
    Target,
)
from optpair.gp.linalg import factorise
from optpair.gp.priors import Density, LogNormal, Normal
from optpair.runtime.shapes import Bool, Float, Int, Num

OFFSET_VAR = 0.25  # c², on standardised values
SPREAD = 4.0  # of the log odds of r_t: more often than not near 0, or near 1


@dataclass(frozen=True, eq=False)
class Given:
    """Rows of earlier studies, on the scale of the present values."""

    X: Float[np.ndarray, "e D"]
    y: Float[np.ndarray, " e"]
    noise_var: Float[np.ndarray, " e"]
    """σ_t², or what is known of a row's own noise."""
    study: Int[np.ndarray, " e"]
    """Which study each row is of, from 0."""
    log_lengthscale: Float[np.ndarray, "T d"]
    """Of each study by itself,"""
    unsure: Float[np.ndarray, "T d"]
    """and the standard deviations by which the present ones may differ from them."""

    @property
    def studies(self) -> int:
        """T, the number of studies."""
        return len(self.log_lengthscale)

    @cached_property
    def alike(self) -> Bool[np.ndarray, "e e"]:
        """Which rows are of one study."""
        return np.asarray(self.study[:, None] == self.study)

    @property
    def names(self) -> tuple[str, ...]:
        """The hyperparameters r_t."""
        return tuple(f"related{t}" for t in range(self.studies))


@dataclass(frozen=True)
class Related(Kernel):
    """A kernel that knows rows of earlier studies; between points of the present one, it is `base`.

    log(r_t/(1 − r_t)) ~ N(0, spread²): as likely unrelated as related.
    """

    name: ClassVar[str] = "related"
    base: Kernel
    given: Given
    spread: float = SPREAD

    def blocks(self) -> tuple[Block, ...]:
        """Those of `base`, and how related each study is."""
        own = (Block(name, 1, Logit(self.spread), Normal()) for name in self.given.names)
        return (*self.base.blocks(), *own)

    def bind(self, hypers: Hyperparameters, columns: Columns) -> Covariance:
        """The covariance between points of the present study."""
        return self.base.bind(hypers, columns)

    def pairwise(self, X: Float[np.ndarray, "n D"], columns: Columns) -> RelatedPairs:
        """The covariance at the given rows, which come first, and some data."""
        return RelatedPairs.of(self, X, columns)

    def links(self, covariance: Covariance, hypers: Hyperparameters) -> Links:
        """How the given rows enter a posterior."""
        r = np.stack([hypers.own[name] for name in self.given.names], 1)
        return Links.of(self.given, covariance, r)

    def tie(self, prior: Density, d: int) -> Tie | None:
        """(R5), where the prior of the length scales is log-normal."""
        if not isinstance(prior, LogNormal):
            return None
        given = self.given
        return Tie(prior, d, given.log_lengthscale, given.unsure, given.names, self.spread)


@dataclass(frozen=True, eq=False)
class Links:
    """What e given rows have to do with the present function, under M sets."""

    loading: Num[np.ndarray, "M e"]
    apart: Float[np.ndarray, "M e e"]
    """The covariance of their noise, (R4)."""

    @classmethod
    def of(cls, given: Given, covariance: Covariance, r: Float[np.ndarray, "M T"]) -> Links:
        """From the relatedness of each study."""
        own, e = r[:, given.study], np.arange(len(given.y))
        K = covariance.between(given.X, given.X).K.copy()
        K[:, e, e] = covariance.diagonal(given.X)
        apart = np.where(given.alike, (1 - own**2)[:, None] * K + OFFSET_VAR, 0.0)
        apart[:, e, e] += given.noise_var
        return cls(own, apart)  # (R3), (R4)

    @property
    def count(self) -> int:
        """e, the number of rows."""
        return int(self.loading.shape[1])

    @cached_property
    def root(self) -> Float[np.ndarray, "M e e"]:
        """Cholesky factors of the covariance of the noise."""
        return np.array([factorise(own)[0] for own in self.apart]).reshape(self.apart.shape)

    def load(self, rows: Num[np.ndarray, "M ... n"]) -> Num[np.ndarray, "M ... n"]:
        """Covariances of something with f at all rows, in place, to those with their values."""
        e = self.count
        rows[..., :e] *= self.loading.reshape(-1, *(1,) * (rows.ndim - 2), e)
        return rows

    def gram(self, K: Float[np.ndarray, "M n n"]) -> None:
        """From cov f(X), in place, to the covariance of values; noise only of the given rows."""
        e = self.count
        self.load(K)
        self.load(K.mT)
        K[:, :e, :e] += self.apart

    def single(self) -> Links:
        """In single precision."""
        return replace(self, loading=self.loading.astype(np.float32))

    def of_sets(self, chosen: slice | np.ndarray) -> Links:
        """Of some of the sets."""
        return Links(self.loading[chosen], self.apart[chosen])


@dataclass(frozen=True)
class LoadedTarget:
    """The rows of a posterior, as values that covariances are taken with."""

    target: Target
    links: Links

    def between(self, X: Points) -> LoadedBetween:
        """cov(f(x), y), (R3)."""
        between = self.target.between(X)
        return LoadedBetween(between, self.links, self.links.load(between.K.copy()))

    def of_sets(self, chosen: slice | np.ndarray) -> LoadedTarget:
        """Of some of the sets."""
        return LoadedTarget(self.target.of_sets(chosen), self.links.of_sets(chosen))


@dataclass(frozen=True)
class LoadedBetween:
    """Covariances of f at q points with the values of rows."""

    between: Between
    links: Links
    K: Num[np.ndarray, "M q n"]

    def pull(self, by_K: Num[np.ndarray, "M q n"]) -> Num[np.ndarray, "M q D"]:
        """Σ by_K ∂K/∂x."""
        return self.between.pull(self.links.load(by_K.copy()))


@dataclass(frozen=True)
class RelatedPairs:
    """Pairs of rows, the given ones first, by the studies that they are of."""

    kernel: Related
    base: Pairwise
    alike: Bool[np.ndarray, " p"]
    """Both rows are of one earlier study."""
    of_study: Float[np.ndarray, "T p"]
    """Whether one row of a pair is of a study and the other is not: 0 or 1."""

    @classmethod
    def of(cls, kernel: Related, X: Float[np.ndarray, "n D"], columns: Columns) -> RelatedPairs:
        """Pairs are in the order of `numpy.triu_indices(e + n, 1)`."""
        given = kernel.given
        study = np.concatenate([given.study, np.full(len(X), -1)])
        first, second = np.triu_indices(len(study), 1)
        one, other = study[first], study[second]
        alike = (one == other) & (one >= 0)
        each = np.arange(given.studies)[:, None]
        of_study = ((one == each) != (other == each)).astype(np.float64)
        base = kernel.base.pairwise(np.concatenate([given.X, X]), columns)
        return cls(kernel, base, alike, of_study)

    def fit(self, values: Mapping[str, Float[np.ndarray, "B _"]]) -> RelatedPairsFit:
        """Under the hyperparameters `values`, by name."""
        base = self.base.fit(values)
        r = np.concatenate([values[name] for name in self.kernel.given.names], 1)
        r = np.maximum(r, np.finfo(np.float64).tiny)
        factor = np.exp(np.log(r) @ self.of_study)
        scaled = factor * base.pairs  # (R2)
        pairs = scaled + OFFSET_VAR * self.alike
        return RelatedPairsFit(self, base, r, factor, scaled, base.diagonal, pairs)


@dataclass(frozen=True)
class RelatedPairsFit:
    """Covariances of all pairs of rows under B sets."""

    of: RelatedPairs
    base: PairwiseFit
    r: Float[np.ndarray, "B T"]
    factor: Float[np.ndarray, "B p"]
    scaled: Float[np.ndarray, "B p"]
    diagonal: Float[np.ndarray, " B"]
    pairs: Float[np.ndarray, "B p"]

    def pull(
        self, by_pairs: Float[np.ndarray, "B p"], by_diagonal: Float[np.ndarray, " B"]
    ) -> dict[str, Any]:
        """Derivatives by the value of each hyperparameter, by name."""
        found = self.base.pull(by_pairs * self.factor, by_diagonal)
        by_r = (by_pairs * self.scaled) @ self.of.of_study.T / self.r
        names = self.of.kernel.given.names
        return found | {name: by_r[:, t : t + 1] for t, name in enumerate(names)}


@dataclass(frozen=True, eq=False)
class Tie:
    """(R5), as a factor of the prior: what relatedness says about the length scales."""

    prior: LogNormal
    d: int
    near: Float[np.ndarray, "T d"]
    unsure: Float[np.ndarray, "T d"]
    names: tuple[str, ...]
    spread: float

    @cached_property
    def _normal(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Centre, precision and log determinant of the prior of log ℓ."""
        centre, precision = self.prior.normal(self.d, self.d)
        return centre, precision, float(np.linalg.slogdet(precision)[1])

    def _parts(
        self, parts: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """log of each weighted ratio q_t/p (B, T + 1), π_0's first; r²; distances from centres."""
        u = np.concatenate([parts[name] for name in self.names], 1) * self.spread
        log_r2 = -2 * np.logaddexp(0.0, -u)  # (B, T)
        r2 = np.exp(log_r2)
        none = np.sum(np.log(-np.expm1(np.minimum(log_r2, -1e-300))), 1, keepdims=True)
        log_share = np.concatenate([none, log_r2], 1)
        log_share = log_share - logsumexp(log_share, axis=1, keepdims=True)
        centre, precision, log_det = self._normal
        log_l = parts["lengthscale"]
        away = log_l - centre
        log_p = np.vecdot(away, away @ -precision) / 2 + log_det / 2
        near = (log_l[:, None] - self.near) / self.unsure
        log_q = -np.sum(near**2 / 2 + np.log(self.unsure), -1)
        ratio = np.concatenate([np.zeros((len(log_l), 1)), log_q - log_p[:, None]], 1)
        return log_share + ratio, log_share, r2, near

    def log_density(
        self, parts: Mapping[str, np.ndarray]
    ) -> tuple[Float[np.ndarray, " B"], dict[str, Thetas]]:
        """log of the factor, and its derivatives by the entries of θ that it depends on."""
        terms, log_share, r2, near = self._parts(parts)
        value = logsumexp(terms, axis=1)
        post = np.exp(terms - value[:, None])  # of each component, given ℓ
        centre, precision, _ = self._normal
        by_p = (parts["lengthscale"] - centre) @ precision  # of −log p
        by_l = np.einsum("bt,btd->bd", post[:, 1:], by_p[:, None] - near / self.unsure)
        # log share_t has d log r_t²/du at t and d Σ log(1 − r²)/du at 0, less their mean.
        more = post - np.exp(log_share)
        r = np.sqrt(r2)
        by_u = more[:, 1:] * 2 * (1 - r) - more[:, :1] * 2 * r2 / (1 + r)
        found = {name: self.spread * by_u[:, t : t + 1] for t, name in enumerate(self.names)}
        return value, found | {"lengthscale": by_l}

    def start(self, parts: Mapping[str, np.ndarray]) -> None:
        """Move length scales, in place, to those of the study that is most related, if one is."""
        u = np.concatenate([parts[name] for name in self.names], -1)
        best = np.argmax(u, -1)
        log_l = parts["lengthscale"]
        close = self.near[best] + self.unsure[best] * (log_l - self._normal[0]) / self.prior.scale
        log_l[...] = np.where(np.max(u, -1, keepdims=True) > 0, close, log_l)
