"""Predictive Entropy Search: how much an evaluation would say about where the optimum is, x*.

    α(x) = H[y | x] − E_{x*} H[y | x, x*]

x* comes from sample paths; the value f* of a pair is not used. That x* is the maximiser is put into
the GP of its set as what has to hold there, g and h being derivatives in units of the length scale:

    (P1)  g_k(x*) = 0 and h_k(x*) ≤ 0     in each coordinate k where x* is interior and continuous
    (P2)  f(x*) ≥ f(x_b)                  x_b: the datum with the highest posterior mean
    (P3)  f(x) ≤ f(x*)                    x: the query

g = 0 is linear, and exact but for a softness δ (below). The inequalities of (P1) and (P2) become
Gaussian sites by expectation propagation (`orthant`), once for each x*. What they leave of f is a
GP again, with mean m_q and covariance k_q. (P3) is then a truncation of t = f(x*) − f(x) at zero,
by moment matching:

    (P4)  v_q(x) = k_q(x, x) − ρ² k_q(x, x) (1 − v(β)),    β = E t/√var t,    ρ = corr(f(x), t)
    (P5)  gain(x) = ½ log(s + σ²) − ½ log(v_q + σ²), in two terms that cannot cancel
    (P6)  α(x) = mean over sets of the mean over that set's x* of gain(x), in nats

Each step only takes variance away, so that no gain is negative.

Where this differs from Hernández-Lobato et al. (2014):
- Off-diagonal entries of the Hessian are left free. There they are fixed at the path's values: that
  is knowledge of the path beyond x*, and would be counted as if x* had told it.
- (P2) compares two values of f, so that noise is dealt with by the GP; there the noisy max y is
  compared with f(x*), as if its noise were new. Without noise the two agree.
- On faces and in discrete coordinates nothing holds of the derivatives, and nothing is conditioned.

The maximum of a path is found to a finite precision, so that g = 0 holds up to a standard deviation
of √δ = 1e-3 √a; a gradient that the data already know to be a little off cannot then tear the mean
away. The inequalities are softened by 1e-4 √a, which keeps covariances positive definite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from optpair.acquisition import orthant
from optpair.acquisition.base import SMALLEST, Acquisition, Context, check_sets, interior
from optpair.acquisition.truncation import moment_matched_gain
from optpair.cube import Cube
from optpair.gp import derivatives
from optpair.gp.posterior import Posterior, inverse_factor
from optpair.pairs import OptimalPairs
from optpair.runtime import compiled, double, pytree

DELTA = 1e-6  # of the output scale: how exactly a gradient is zero
SOFTNESS = 1e-8  # of the output scale, the same for the inequalities


class Conditioned(NamedTuple):
    """f at the queries, before and after what holds of x* is known; t = f(x*) − f(x)."""

    variance: Float[Array, "M q"]  # s
    taken: Float[Array, "M P q"]  # by (P1) and (P2): k_q(x, x) = s − taken
    mean: Float[Array, "M P q"]  # m_q
    gap: Float[Array, "M P q"]  # E t
    spread: Float[Array, "M P q"]  # var t
    share: Float[Array, "M P q"]  # ρ² k_q(x, x), what knowing t would take


@pytree
@dataclass(frozen=True)
class PES(Acquisition):
    """α_PES (P6), in nats.

    With z = (g, −h, f(x*) − f(x_b)) at one x*, `fold` maps the covariances of f(x) with
    (f(x*), g, h, f(x_b)) to those with L⁻¹z and, in the last row, with f(x*). L⁻¹ is such that
    k_q(x, x) = s − |cov(f(x), L⁻¹z)|².
    """

    posterior: Posterior
    x: Float[Array, "M P D"]
    rival: Float[Array, "M F D"]  # x_b
    fold: Float[Array, "M P J J"]
    whitened: Float[Array, "M P J n"]  # fold times C⁻¹ of the covariances with the data
    pull: Float[Array, "M P J-1"]  # how far each entry of L⁻¹z was moved
    lean: Float[Array, "M P J-1"]  # its covariance with f(x*)
    star_mean: Float[Array, "M P"]  # of f(x*), under q
    star_variance: Float[Array, "M P"]
    change: Float[Array, "M P"]  # of q in the last sweep of EP
    sweeps: Float[Array, "M P"]

    @property
    def converged(self) -> Bool[np.ndarray, "M P"]:
        """Whether EP converged for each x*: its last sweep changed nothing to speak of."""
        return np.asarray(self.change) <= orthant.TOLERANCE

    @property
    def report(self) -> str:
        """How EP went, in a line."""
        done, sweeps = self.converged, np.asarray(self.sweeps)
        return (
            f"EP converged for {done.mean():.1%} of {done.size} optima; largest last change "
            f"{np.max(np.asarray(self.change)):.1e}, {np.max(sweeps):.0f} sweeps"
        )

    def conditioned(self, X: Float[Array, "q D"]) -> Conditioned:
        """What (P1) and (P2) leave of f(x), and of t."""
        posterior = self.posterior
        K = posterior.covariance(X)
        A = posterior.whiten(K)
        variance = posterior.variance(A)
        M, P, J, n = self.whitened.shape
        by_data = self.whitened.reshape(M, P * J, n) @ jnp.swapaxes(A, 1, 2)
        rows = self.fold @ _rows(posterior, self.x, self.rival, X) - by_data.reshape(M, P, J, -1)
        z, cross = rows[:, :, :-1], rows[:, :, -1]
        floor = SMALLEST * posterior.outputscale[:, None, None]
        taken = jnp.minimum(jnp.sum(z * z, 2), variance[:, None])
        mean = posterior.means(K) + jnp.sum(z * self.pull[..., None], 2)
        cross = cross - jnp.sum(z * self.lean[..., None], 2)
        left = jnp.maximum(variance[:, None] - taken, floor)
        spread = jnp.maximum(left + self.star_variance[..., None] - 2 * cross, floor)
        share = jnp.minimum((left - cross) ** 2 / spread, left)
        return Conditioned(variance, taken, mean, self.star_mean[..., None] - mean, spread, share)

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """α(x), nats."""
        variance, taken, _, gap, spread, share = self.conditioned(X)
        noise = self.posterior.noise[:, None, None]
        floor = SMALLEST * self.posterior.outputscale[:, None, None]
        left = jnp.maximum(variance[:, None] - taken, floor)
        total = jnp.maximum(variance[:, None], floor) + noise
        conditioning = -jnp.log1p(-taken / (total + floor)) / 2
        truncation = moment_matched_gain(
            gap / jnp.sqrt(spread), share, left - share + noise
        )  # (P4)
        return jnp.mean(conditioning + truncation, (0, 1))  # (P5), (P6)


def _rows(
    posterior: Posterior,
    x: Float[Array, "M P D"],
    rival: Float[Array, "M F D"],
    X: Float[Array, "q D"],
) -> Float[Array, "M P J q"]:
    """Prior covariances of f(X) with (f(x*), g, h, f(x_b)), J = 2D + 2."""
    at_star = derivatives.cross(posterior.kernel, posterior.scale, posterior.outputscale, x, X)
    at_rival = posterior.prior_covariance(rival, X)[:, :, None]
    shape = (*at_star.shape[:2], 1, len(X))
    return jnp.concatenate([at_star, jnp.broadcast_to(at_rival, shape)], 2)


def _rivals(posterior: Posterior) -> Float[Array, "M F D"]:
    """The datum with the highest posterior mean, under each set and fantasy."""
    means = jnp.where(posterior.mask, posterior.means_at_data(), -jnp.inf)
    return posterior.X[jnp.argmax(means, -1)]


class _Joint(NamedTuple):
    """What the data say of (f(x*), g, h, f(x_b))."""

    mean: Float[Array, "M P J"]
    covariance: Float[Array, "M P J J"]
    whitened: Float[Array, "M P J n"]


def _joint(posterior: Posterior, x: Float[Array, "M P D"], rival: Float[Array, "M F D"]) -> _Joint:
    M, P, D = x.shape
    kernel, a = posterior.kernel, posterior.outputscale
    rows = _rows(posterior, x, rival, posterior.X) * posterior.mask
    flat = rows.reshape(M, P * rows.shape[2], -1)
    whitened = posterior.whiten(flat).reshape(rows.shape)
    apart = derivatives.cross(kernel, posterior.scale, a, x, rival[:, :, None])
    here = jnp.broadcast_to(
        derivatives.at_one_point(kernel, a, D)[:, None], (M, P, 1 + 2 * D, 1 + 2 * D)
    )
    own = jnp.broadcast_to(a[:, None, None, None], (M, P, 1, 1))
    prior = jnp.block([[here, apart], [jnp.swapaxes(apart, 2, 3), own]])
    is_value = jnp.zeros(2 * D + 2).at[jnp.array([0, 2 * D + 1])].set(1.0)
    weights = posterior.weights[:, :, None]  # with fantasies, x*_p belongs to fantasy p
    return _Joint(
        posterior.mean[:, None, None] * is_value + jnp.sum(rows * weights, -1),
        prior - whitened @ jnp.swapaxes(whitened, 2, 3),
        whitened,
    )


def _reading(free: Bool[Array, "M P D"]) -> Float[Array, "M P J J"]:
    """The map from (f(x*), g, h, f(x_b)) to (z, f(x*)); conditions that do not hold read zero."""
    D = free.shape[-1]
    read = np.zeros((2 * D + 2, 2 * D + 2))
    read[:D, 1 : D + 1] = np.eye(D)
    read[D : 2 * D, D + 1 : 2 * D + 1] = -np.eye(D)
    read[2 * D, [0, -1]] = 1.0, -1.0
    read[2 * D + 1, 0] = 1.0
    always = jnp.ones((*free.shape[:2], 2), dtype=bool)
    return jnp.asarray(read) * jnp.concatenate([free, free, always], 2)[..., None]


def _of(posterior: Posterior, x: Float[Array, "M P D"], continuous: Bool[Array, " D"]) -> PES:
    """All that does not depend on the query: one EP for every x*, all at once."""
    D = x.shape[-1]
    free = interior(x, continuous)
    rival = _rivals(posterior)
    joint, read = _joint(posterior, x, rival), _reading(free)
    mean = jnp.einsum("mpij,mpj->mpi", read, joint.mean)
    V = read @ joint.covariance @ jnp.swapaxes(read, 2, 3)
    a = posterior.outputscale[:, None, None]
    active = jnp.concatenate([free, jnp.ones_like(free[..., :1])], -1)

    # g = 0, or nothing where it does not hold.
    L_g = inverse_factor(V[:, :, :D, :D] + jnp.where(free, DELTA * a, a)[..., None] * jnp.eye(D))
    seen = L_g @ V[:, :, :D, D:]
    pull_g = -jnp.einsum("mpij,mpj->mpi", L_g, mean[..., :D])
    mean = mean[..., D:] + jnp.einsum("mpji,mpj->mpi", seen, pull_g)
    V = V[:, :, D:, D:] - jnp.swapaxes(seen, 2, 3) @ seen

    # w = (−h, f(x*) − f(x_b)) ≥ 0, by sites.
    k = D + 1
    soft = jnp.where(active, SOFTNESS * a, a)[..., None] * jnp.eye(k)
    V_w = V[:, :, :k, :k] + soft
    V_w = V_w + jnp.maximum(SOFTNESS * a - jnp.diagonal(V_w, axis1=2, axis2=3), 0)[..., None] * (
        jnp.eye(k)
    )
    sites = orthant.propagate(mean[..., :k], V_w, active)
    root = jnp.sqrt(sites.precision)
    outer = root[..., :, None] * root[..., None, :]
    L_w = inverse_factor(jnp.eye(k) + outer * V_w)
    R = L_w * root[..., None, :]
    target = jnp.where(root > 0, sites.shift / jnp.where(root > 0, root, 1.0), 0.0)
    pull_w = jnp.einsum("mpij,mpj->mpi", L_w, target - root * mean[..., :k])

    lean_w = jnp.einsum("mpij,mpj->mpi", R, V[:, :, :k, k])
    corner = -R @ jnp.swapaxes(seen[..., :k], 2, 3) @ L_g
    nothing = jnp.zeros_like(jnp.swapaxes(corner, 2, 3))
    edge = jnp.zeros((*corner.shape[:2], 1, 2 * D + 1))
    one = jnp.ones((*corner.shape[:2], 1, 1))
    L = jnp.block([[L_g, nothing], [corner, R]])
    fold = jnp.block([[L, jnp.swapaxes(edge, 2, 3)], [edge, one]]) @ read
    left = V[:, :, k, k] - jnp.sum(lean_w**2, -1)
    return PES(
        posterior,
        x,
        rival,
        fold,
        fold @ joint.whitened,
        pull=jnp.concatenate([pull_g, pull_w], -1),
        lean=jnp.concatenate([seen[..., k], lean_w], -1),
        star_mean=mean[..., k] + jnp.sum(lean_w * pull_w, -1),
        star_variance=jnp.maximum(left, 0.0),
        change=sites.change,
        sweeps=sites.sweeps.astype(float),
    )


def build(context: Context) -> PES:
    """PES from what the engine has at hand."""
    if context.stars is None:
        raise ValueError("Predictive Entropy Search needs optimal pairs")
    continuous = jnp.asarray(context.cube.continuous)
    return _of(context.posterior, jnp.asarray(context.stars.x), continuous)


_compiled = compiled()(_of)


@double
def pes(posterior: Posterior, stars: OptimalPairs, *, cube: Cube | None = None) -> PES:
    """Predictive Entropy Search as a function of points: `pes(posterior, stars)(X)` in nats.

    Of the pairs only x* is used. On the legal points of `cube`, discrete columns have no derivative
    conditions. `.converged` (M, P) and `.report` say how EP went.
    """
    check_sets(posterior, stars.x)
    cube = Cube.box(posterior.scale.shape[1]) if cube is None else cube
    return _compiled(posterior, jnp.asarray(stars.x), jnp.asarray(cube.continuous))
