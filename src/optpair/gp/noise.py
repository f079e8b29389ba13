"""The noise of looks: how it grows as looks get cheaper, and what looks at one run share.

A look at the fidelities u is taken to cost e(u) of what one at the target costs, the product of e_c
over fidelities c: n epochs of N, say, cost n/N. Its noise has the variance

    (L4)  σ²(u) = σ² Π_c e_c(u_c)^(−κ_c),   κ_c ≥ 0

unless that is known: σ² at the target, and the same everywhere if κ = 0. Observations of one run
share its luck: of the smaller of two variances a share η is common,

    (L3)  Σ_ij = η min(σ_i², σ_j²)

With η = 1 a look has the luck of the next one at its run, and more of its own: it says nothing that
the next one does not. So it is with means of more and more values of N, κ = 1: if their errors are
independent with variance τ², means of j and of k values have the covariance τ²/max(j, k).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optpair.gp.hyperparameters import Block, Exp
from optpair.gp.priors import LogNormal
from optpair.problem.parameters import Price
from optpair.runtime.shapes import Float, Int

GROWTH = "growth"  # the hyperparameter κ
RATE = LogNormal(0.0, 0.5)  # errors that average have κ = 1
ROUNDED = 1e-9  # of a variance: looks that share all of their noise have a singular covariance


@dataclass(frozen=True)
class Growth:
    """The fidelities with which noise may grow."""

    prices: tuple[Price, ...]
    """What looks are taken to cost, fidelity by fidelity."""

    @property
    def block(self) -> Block:
        """The hyperparameter κ, one for each fidelity."""
        return Block(GROWTH, len(self.prices), Exp(), RATE)

    def logs(self, X: Float[np.ndarray, "q D"]) -> Float[np.ndarray, "q C"]:
        """−log e_c."""
        return np.stack([-price.log_cost(X)[0] for price in self.prices], axis=1)


@dataclass(frozen=True)
class Growing:
    """Noise that grows under M sets."""

    of: Growth
    rate: Float[np.ndarray, "M C"]

    def factor(self, X: Float[np.ndarray, "q D"]) -> Float[np.ndarray, "M q"]:
        """How many times as large as at the target the variance is."""
        return np.exp(self.rate @ self.of.logs(X).T)  # (L4)

    def pull(
        self, X: Float[np.ndarray, "q D"], by_log: Float[np.ndarray, "M q"]
    ) -> Float[np.ndarray, "q D"]:
        """From derivatives by the logarithm of the variance to those by each point."""
        slope = np.zeros(X.shape)
        for price, rate in zip(self.of.prices, self.rate.T, strict=True):
            slope[:, price.column] -= (rate @ by_log) * price.log_cost(X)[1]
        return slope

    def of_sets(self, chosen: slice | np.ndarray) -> Growing:
        """Of some of the sets."""
        return Growing(self.of, self.rate[chosen])


@dataclass(frozen=True)
class Runs:
    """Observations of one run, which share its luck (L3)."""

    run: Int[np.ndarray, " n"]
    share: Float[np.ndarray, " M"]

    def covariance(self, noise_var: Float[np.ndarray, "M n"]) -> Float[np.ndarray, "M n n"]:
        """Of the noises of different observations; zero on the diagonal."""
        same = (self.run[:, None] == self.run) & ~np.eye(len(self.run), dtype=bool)
        least = np.minimum(noise_var[:, :, None], noise_var[:, None])
        return self.share[:, None, None] * same * least  # (L3)

    def drawn(
        self, noise_var: Float[np.ndarray, "M n"], white: Float[np.ndarray, "M P n"]
    ) -> Float[np.ndarray, "M P n"]:
        """Noise made of standard normal numbers, one for each observation."""
        order = np.argsort(self.run, kind="stable")
        _, start, counts = np.unique(self.run[order], return_index=True, return_counts=True)
        first = order[np.repeat(start, counts)]
        if np.array_equal(noise_var[:, order], noise_var[:, first]):
            return np.sqrt(noise_var)[:, None] * self._alike(white)
        found = np.sqrt(noise_var)[:, None] * white
        for size in np.unique(counts[counts > 1]):
            rows = order[start[counts == size, None] + np.arange(size)]
            factor = np.linalg.cholesky(self._blocks(noise_var[:, rows]))
            found[:, :, rows] = np.einsum("mrij,mprj->mpri", factor, white[:, :, rows])
        return found

    def _alike(self, white: Float[np.ndarray, "M P n"]) -> Float[np.ndarray, "M P n"]:
        """Those of k observations of a run with the correlation η, where all are equally noisy.

        √(1 − η) w_i + b Σ w_j, over the run's, with b such that the variances are 1.
        """
        own = 1 - self.share[:, None, None]
        _, of, counts = np.unique(self.run, return_inverse=True, return_counts=True)
        k = counts[of]
        sums = white @ (of[:, None] == of)
        return np.sqrt(own) * white + (np.sqrt(own + k * (1 - own)) - np.sqrt(own)) / k * sums

    def _blocks(self, noise_var: Float[np.ndarray, "M r k"]) -> Float[np.ndarray, "M r k k"]:
        """The covariances of runs of k observations."""
        share, own = self.share[:, None, None, None], np.eye(noise_var.shape[-1])
        least = np.minimum(noise_var[..., None], noise_var[..., None, :])
        return least * np.where(own, 1 + ROUNDED, share)  # (L3)

    def of_sets(self, chosen: slice | np.ndarray) -> Runs:
        """Of some of the sets."""
        return Runs(self.run, self.share[chosen])

    def and_another(self) -> Runs:
        """With one more observation, of a run of its own."""
        return Runs(np.append(self.run, self.run.max() + 1), self.share)
