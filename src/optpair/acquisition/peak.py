"""Joint Entropy Search that also knows a peak when it has one: at x* the slope is zero.

A pair says more than f(x*) = f*. As x* is where f is largest, f is flat there in every coordinate k
in which x* is interior and continuous, and that is linear in f as well. With g the derivatives in
units of the length scale, z = (f(x*), g) is what is known, to be ζ = (f*, 0):

    (K1)  m_p(x) = m(x) + cov(f(x), z) V⁻¹ (ζ − E z),     V = var z + softness
    (K2)  s_p(x) = s(x) − cov(f(x), z) V⁻¹ cov(z, f(x))

and the rest is that of `jes`, (M3) to (M5). Without slopes it is `jes` itself: where x* is in a
corner, or all coordinates are discrete. What a look at the flanks of a peak says of where its top
is counts here, and does not in `jes`.

f* is softened as in `jes`, a slope by a standard deviation of 1e-3 √a: the maximum of a path is
found to a finite precision, and a slope that the data already know to be a little off cannot then
tear the mean away.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

from optpair.acquisition.base import Acquisition, Context, check_sets, interior, pair_gain
from optpair.cube import Cube
from optpair.gp import derivatives
from optpair.gp.posterior import Posterior
from optpair.pairs import OptimalPairs
from optpair.runtime import compiled, double, pytree

VALUE, SLOPE = 1e-8, 1e-6  # of the output scale: how exactly f* is met, and a slope is zero


@pytree
@dataclass(frozen=True)
class Peak(Acquisition):
    """α of JES with flat optima (K1), (K2), in nats; J = 1 + D, and L⁻¹ is that of V = LLᵀ."""

    posterior: Posterior
    x: Float[Array, "M P D"]
    f: Float[Array, "M P"]
    fold: Float[Array, "M P J J"]  # L⁻¹, zero for slopes that are not known
    whitened: Float[Array, "M P J n"]  # L⁻¹ times C⁻¹ of the covariances with the data
    pull: Float[Array, "M P J"]  # L⁻¹ (ζ − E z)

    def conditioned(
        self, X: Float[Array, "q D"]
    ) -> tuple[Float[Array, "M q"], Float[Array, "M P q"], Float[Array, "M P q"]]:
        """s, what a pair takes from it, and f* − m_p."""
        posterior = self.posterior
        K = posterior.covariance(X)
        A = posterior.whiten(K)
        variance = posterior.variance(A)
        M, P, J, n = self.whitened.shape
        by_data = self.whitened.reshape(M, P * J, n) @ jnp.swapaxes(A, 1, 2)
        z = self.fold @ _rows(posterior, self.x, X) - by_data.reshape(M, P, J, -1)
        mean_given = posterior.means(K) + jnp.sum(z * self.pull[..., None], 2)  # (K1)
        taken = jnp.minimum(jnp.sum(z * z, 2), variance[:, None])  # (K2)
        return variance, taken, self.f[..., None] - mean_given

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """α(x), nats."""
        return pair_gain(self.posterior, *self.conditioned(X), exact=False)


def _rows(
    posterior: Posterior, x: Float[Array, "M P D"], X: Float[Array, "q D"]
) -> Float[Array, "M P J q"]:
    """Prior covariances of f(X) with (f(x*), g)."""
    kernel, scale, a = posterior.kernel, posterior.scale, posterior.outputscale
    return derivatives.cross(kernel, scale, a, x, X)[:, :, : 1 + x.shape[-1]]


def _of(posterior: Posterior, stars: OptimalPairs, continuous: Bool[Array, " D"]) -> Peak:
    """What is shared by all candidates is computed once."""
    x, f = jnp.asarray(stars.x), jnp.asarray(stars.f)
    M, P, D = x.shape
    J, a = 1 + D, posterior.outputscale
    flat = interior(x, continuous)
    known = jnp.concatenate([jnp.ones_like(flat[..., :1]), flat], -1)
    rows = _rows(posterior, x, posterior.X) * posterior.mask * known[..., None]
    whitened = posterior.whiten(rows.reshape(M, P * J, -1)).reshape(rows.shape)
    prior = derivatives.at_one_point(posterior.kernel, a, D)[:, None, :J, :J]
    prior = prior * (known[..., :, None] & known[..., None, :])
    softness = jnp.asarray([VALUE] + [SLOPE] * D)
    softness = jnp.where(known, softness, 1.0) * a[:, None, None]
    V = prior - whitened @ jnp.swapaxes(whitened, 2, 3) + softness[..., None] * jnp.eye(J)
    L = _inverse_factor(V, VALUE * a)
    # With fantasies, pair p belongs to fantasy p.
    expected = jnp.sum(rows * posterior.weights[:, :, None], -1)
    wanted = jnp.concatenate([(f - posterior.mean[:, None])[..., None], jnp.zeros_like(x)], -1)
    pull = jnp.einsum("mpij,mpj->mpi", L, wanted - expected)
    return Peak(posterior, x, f, L * known[..., None, :], L @ whitened, pull)


def _inverse_factor(
    V: Float[Array, "M P J J"], least: Float[Array, " M"]
) -> Float[Array, "M P J J"]:
    """L⁻¹ of V = LLᵀ, or of f(x*) alone where round-off has left V without a factor."""
    eye = jnp.eye(V.shape[-1])
    factor = jnp.linalg.cholesky(V)
    inverse = solve_triangular(factor, jnp.broadcast_to(eye, V.shape), lower=True)
    found = jnp.all(jnp.isfinite(inverse), (-2, -1), keepdims=True)
    alone = jnp.maximum(V[..., :1, :1], least[:, None, None, None])
    return jnp.where(found, inverse, eye[:, :1] * eye[:1] / jnp.sqrt(alone))


def build(context: Context) -> Peak:
    """From what the engine has at hand."""
    if context.stars is None:
        raise ValueError("Joint Entropy Search needs optimal pairs")
    return _of(context.posterior, context.stars, jnp.asarray(context.cube.continuous))


_compiled = compiled()(_of)


@double
def jes_peak(posterior: Posterior, stars: OptimalPairs, *, cube: Cube | None = None) -> Peak:
    """JES with flat optima as a function of points: `jes_peak(posterior, stars)(X)` in nats.

    On the legal points of `cube`, discrete columns have no slope.
    """
    check_sets(posterior, stars.f)
    cube = Cube.box(posterior.scale.shape[1]) if cube is None else cube
    return _compiled(posterior, stars, jnp.asarray(cube.continuous))
