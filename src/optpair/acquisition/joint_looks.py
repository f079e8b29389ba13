"""Joint Entropy Search of several outcomes at other fidelities: (N0), seen from cheaper looks.

What the optimum rules out is a region of the outcomes at the target, t. A look y at (x, u) says of
f(x, t) what a value there would say with more noise,

    (N7)  s_p(x, t)/(s_p(x, t) + σ_t²) = ρ_y² = c² / (s_p(x, t) (s_p(x, u) + σ²)),
          c = cov(f(x, u), f(x, t)) given the optimum

as two normal variables with one correlation are alike. So (N3b) takes the moments at t, with σ_t²
for the noise; the conditioning is that of the look itself. At the target it is (N0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from optpair.acquisition.base import Points
from optpair.acquisition.beside import Beside, BySides, a_target, halves, squares
from optpair.acquisition.joint import JointJES, Look
from optpair.acquisition.special.factors import Each
from optpair.gp.conditioned import Conditioned, ConditionedQuery, Functionals
from optpair.gp.kernels.base import Target
from optpair.gp.posterior import Posterior
from optpair.runtime.shapes import Float

LEAST = 1e-12  # ρ_y²: below, a look says nothing


@dataclass(frozen=True)
class CheapLook(Look):
    """One outcome at q points of some fidelity, as seen from the target.

    `known`, `variance` and `total` are those of the look; `mean`, `given` and `noise` those of a
    value at the target that says as much.
    """

    targets: Mapping[int, float]
    beside: Beside
    here: Each  # s_p(x, u)
    seen: Each  # s_p(x, u) + σ²
    c: Each

    @property
    def explained(self) -> Each:
        """ρ_y² s_p(x, t)."""
        return np.asarray(np.clip(self.c**2 / self.seen, LEAST * self.given, self.given))

    def pull(
        self, by_mean: Each, by_given: Each, by_noise: Each, weights: Float[np.ndarray, "M P 1"]
    ) -> Float[np.ndarray, "q D"]:
        """From derivatives by the moments at the target, and those of the conditioning, to x."""
        assert self.at is not None
        z, zt = halves(self.at.z)
        _, there = halves(self.beside.variance[:, None])
        floor = self.at.conditioned.posterior.floor[:, None, None]
        part, t = self.explained, self.given
        between = (part > LEAST * t) & (part < t)
        by_noise = np.where(between, by_noise, 0.0)
        by_t = by_given + by_noise * (2 * t / part - 1)
        by_part = -by_noise * (t / part) ** 2
        by_c = by_part * 2 * self.c / self.seen
        by_here = by_seen = -by_part * (self.c / self.seen) ** 2
        taken, known_there = self.taken, squares(zt)
        left = self.total - taken
        by_here = by_here * (self.variance - taken == self.here)
        by_taken = weights * (0.5 / left) - by_here
        by_total = weights * (0.5 * taken / (self.total * left))
        by_variance = by_here - by_total * (self.variance >= floor)
        clipped = self.known >= self.variance
        by_variance = by_variance + np.where(clipped, by_taken, 0.0)
        by_there = np.where(there - known_there >= floor, by_t, 0.0)
        shift = self.at.conditioned.shift[..., None]
        sides = BySides(
            2 * np.where(clipped, 0.0, by_taken)[:, :, None] * z,
            by_mean[:, :, None] * shift - 2 * by_there[:, :, None] * zt,
            by_mean,
            by_variance,
            by_there,
            by_c,
        )
        X, posterior = self.beside.X, self.at.conditioned.posterior
        moved = posterior.pull_noise(X, np.sum(by_seen - by_total, axis=1))
        return sides.pull(self.beside, self.at, self.targets) + moved


def cheap_look(
    outcome: Conditioned, targets: Mapping[int, float], aside: Target, X: Points
) -> CheapLook:
    """One outcome at points, conditioned on each optimum, as seen from the target."""
    posterior = outcome.posterior
    beside = Beside.of(posterior, targets, aside, X)
    at: ConditionedQuery = outcome.at(beside.both.X, beside.both)
    (z, zt), (variance, there) = halves(at.z), halves(beside.variance[:, None])
    floor, noise = posterior.floor[:, None, None], posterior.noise_at(X)[:, None]
    known = squares(z)
    here = np.maximum(variance - np.minimum(known, variance), floor)
    given = np.maximum(there - np.minimum(squares(zt), there), floor)
    seen, c = here + noise, beside.covariance[:, None] - np.einsum("mpiq,mpiq->mpq", z, zt)
    part = np.clip(c**2 / seen, LEAST * given, given)
    return CheapLook(
        query=beside.both,
        at=at,
        known=known,
        variance=variance,
        mean=beside.means + np.einsum("mpiq,mpi->mpq", zt, outcome.shift),
        given=given,
        total=np.maximum(variance, floor) + (noise + floor),
        noise=given * (given - part) / part,  # (N7)
        targets=targets,
        beside=beside,
        here=here,
        seen=seen,
        c=c,
    )


def unconditioned(posterior: Posterior, sets: int, optima: int) -> Conditioned:
    """A posterior that knows nothing of the optima."""
    n = len(posterior.X)
    fold, whitened = (np.zeros((sets, optima, 0, k)) for k in (0, n))
    return Conditioned(posterior, Functionals(()), fold, whitened, np.zeros((sets, optima, 0)))


@dataclass(frozen=True, repr=False)
class LookJointJES(JointJES):
    """The gain (N0) of looks at any fidelity, in nats."""

    targets: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, of: JointJES, targets: Mapping[int, float]) -> LookJointJES:
        """The same at every fidelity."""
        return cls(of.outcomes, of.forbidden, of.weights, of.noisy, of.bounded, targets)

    @cached_property
    def _each(self) -> list[tuple[Conditioned, Target]]:
        """Every outcome, and a point of it at the target."""
        M, P = self.weights.shape
        own = [o if isinstance(o, Conditioned) else unconditioned(o, M, P) for o in self.outcomes]
        return [(o, a_target(o.posterior, self.targets)) for o in own]

    def _looks(self, X: Points) -> list[Look]:
        return [cheap_look(own, self.targets, aside, X) for own, aside in self._each]
