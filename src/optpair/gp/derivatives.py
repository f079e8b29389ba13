"""Covariances of a GP's values with its derivatives at given points, in closed form.

Derivatives are taken in units of the length scale, so that all of them are in the units of f:

    g_k = ℓ_k ∂f/∂x_k,    h_k = ℓ_k² ∂²f/∂x_k²

With δ_k = (x_k − x*_k)/ℓ_k and r² = Σ_k δ_k², the prior covariances of f(x) with those at x* are

    (D1)  cov(f(x), f(x*)) = a h(r²)
    (D2)  cov(f(x), g_k)   = −2 a h′(r²) δ_k
    (D3)  cov(f(x), h_k)   = a (4 h″(r²) δ_k² + 2 h′(r²))

and at one and the same point, where odd derivatives of the kernel are zero,

    (D4)  var f = a,   cov(f, h_k) = 2 a h′(0),   cov(g_k, g_l) = −2 a h′(0) [k = l],
          cov(h_k, h_l) = 4 a h″(0) (1 + 2 [k = l])
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from optpair.gp import kernels
from optpair.gp.kernels import Correlation


def cross(
    kernel: Correlation,
    scale: Float[Array, "M D"],
    outputscale: Float[Array, " M"],
    star: Float[Array, "M P D"],
    X: Float[Array, "*batch q D"],
) -> Float[Array, "M P 1+2*D q"]:
    """Prior covariances of (f, g, h) at each x* with f(x), (D1) to (D3).

    X is shared, or (M, 1, q, D), or one set of points a star, (M, P, q, D). Differentiable in X,
    also where x = x*.
    """
    delta = (X[..., None, :, :] if X.ndim == 2 else X) - star[:, :, None]
    delta = jnp.swapaxes(delta / scale[:, None, None], -1, -2)  # (M, P, D, q)
    square = delta * delta
    r2 = jnp.sum(square, -2, keepdims=True)
    h, first, second = kernels.correlation_derivatives(kernel, r2)
    slope = -2 * first * delta  # (D2)
    bend = 4 * second * square + 2 * first  # (D3)
    return outputscale[:, None, None, None] * jnp.concatenate([h, slope, bend], -2)


def at_one_point(
    kernel: Correlation, outputscale: Float[Array, " M"], columns: int
) -> Float[Array, "M 1+2*{columns} 1+2*{columns}"]:
    """Prior covariance of (f, g, h) at a point (D4), the same at every point."""
    M = len(outputscale)
    h, first, second = kernels.correlation_derivatives(kernel, jnp.zeros((M, 1, 1)))
    eye, zero = jnp.eye(columns), jnp.zeros((M, columns, columns))
    none, bent = jnp.zeros((M, 1, columns)), jnp.broadcast_to(2 * first, (M, 1, columns))
    unit = jnp.block(
        [
            [h, none, bent],
            [jnp.swapaxes(none, 1, 2), -2 * first * eye, zero],
            [jnp.swapaxes(bent, 1, 2), zero, 4 * second * (1 + 2 * eye)],
        ]
    )
    return outputscale[:, None, None] * unit
