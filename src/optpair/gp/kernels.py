"""Stationary ARD kernels, as functions of the squared scaled distance.

    r² = Σ_k (x_k − x'_k)² / ℓ_k²,    k(x, x') = a h(r²)

| name       | h(r²)                           | spectral density of x/ℓ              |
|------------|---------------------------------|--------------------------------------|
| `rbf`      | exp(−r²/2)                      | standard normal                      |
| `matern52` | (1 + √5 r + 5r²/3) exp(−√5 r)   | multivariate Student-t, 5 d.o.f.     |
| `mixed`    | (1 − ρ) `rbf` + ρ `matern52`    | one of the two, the latter by ρ      |

How smooth an objective is decides how far its values can be foretold, and is seldom known: in
`mixed` the share ρ that is rough is a hyperparameter like the others, and the data say.

Written in r², Matérn-5/2 is twice differentiable at r = 0; each derivative has a closed form
here, so that derivatives in x are exact up to the fourth, where differentiating through √r²
would give NaN or zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from optpair.runtime import Numbers, pytree, static

Kernel = Literal["rbf", "matern52", "mixed"]
SQRT5 = 5.0**0.5


@pytree
@dataclass(frozen=True)
class Correlation:
    """A kernel of M sets: its name and, for `mixed`, ρ of each; without sets, one number."""

    name: Kernel = static()
    rough: Float[Numbers, "*M"] | None = None

    def between(self, smooth: Any, rough: Any) -> Any:
        """(1 − ρ) smooth + ρ rough, of arrays whose first axis is that of the sets."""
        assert self.rough is not None
        share = self.rough.reshape(self.rough.shape + (1,) * (smooth.ndim - self.rough.ndim))
        return smooth + share * (rough - smooth)


def check_kernel(name: str) -> Kernel:
    """The name of a kernel, or an error that lists them."""
    if name not in get_args(Kernel):
        raise ValueError(f"kernel must be one of {', '.join(get_args(Kernel))}, not {name!r}")
    return cast(Kernel, name)


def _matern52_terms(r2: Any) -> tuple[Any, Any, Any]:
    """h and its first two derivatives in r²; d⁴k/dx⁴ = 25 at r = 0. Of NumPy or JAX arrays."""
    xp = np if isinstance(r2, np.ndarray) else jnp
    r = SQRT5 * xp.sqrt(r2)
    e = xp.exp(-r)
    return (1 + r + r * r / 3) * e, -5 / 6 * (1 + r) * e, 25 / 12 * e


@jax.custom_jvp
def _matern52_second(r2: Float[Array, ...]) -> Float[Array, ...]:
    second: Array = _matern52_terms(r2)[2]
    return second


@_matern52_second.defjvp
def _matern52_second_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Float[Array, ...], Float[Array, ...]]:
    (r2,), (dr2,) = primals, tangents
    # The third derivative in r² is infinite at r = 0, but enters derivatives in x times x² or
    # more: zero is right. Both branches are finite, so that one more derivative is too.
    apart = r2 > 0
    r = jnp.sqrt(jnp.where(apart, r2, 1.0))
    third = jnp.where(apart, -25 * SQRT5 / 24 * jnp.exp(-SQRT5 * r) / r, 0.0)
    return _matern52_second(r2), third * dr2


@jax.custom_jvp
def _matern52_first(r2: Float[Array, ...]) -> Float[Array, ...]:
    first: Array = _matern52_terms(r2)[1]
    return first


@_matern52_first.defjvp
def _matern52_first_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Float[Array, ...], Float[Array, ...]]:
    (r2,), (dr2,) = primals, tangents
    return _matern52_first(r2), _matern52_second(r2) * dr2


@jax.custom_jvp
def _matern52(r2: Float[Array, ...]) -> Float[Array, ...]:
    h: Array = _matern52_terms(r2)[0]
    return h


@_matern52.defjvp
def _matern52_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Float[Array, ...], Float[Array, ...]]:
    (r2,), (dr2,) = primals, tangents
    return _matern52(r2), _matern52_first(r2) * dr2


def correlation(kernel: Correlation, r2: Float[Array, ...]) -> Float[Array, ...]:
    """h(r²), with exact derivatives at r = 0."""
    if kernel.name == "matern52":
        return _matern52(r2)
    h = jnp.exp(-r2 / 2)
    return h if kernel.name == "rbf" else kernel.between(h, _matern52(r2))


def correlation_derivatives(
    kernel: Correlation, r2: Float[Array, ...]
) -> tuple[Float[Array, ...], Float[Array, ...], Float[Array, ...]]:
    """h(r²), h′(r²) and h″(r²), the last with a derivative that is right in x, also at r = 0."""
    h = jnp.exp(-r2 / 2)
    smooth = h, -h / 2, h / 4
    if kernel.name == "rbf":
        return smooth
    rough = _matern52(r2), _matern52_first(r2), _matern52_second(r2)
    if kernel.name == "matern52":
        return rough
    h, first, second = (kernel.between(s, r) for s, r in zip(smooth, rough, strict=True))
    return h, first, second


def correlation_and_slopes(
    kernel: Correlation, r2: Float[np.ndarray, ...]
) -> tuple[Float[np.ndarray, ...], Float[np.ndarray, ...], Float[np.ndarray, ...] | None]:
    """h(r²), h′(r²) and, for `mixed`, the derivative of h in ρ, of NumPy arrays."""
    if kernel.name == "matern52":
        return *_matern52_terms(r2)[:2], None
    h = np.exp(-r2 / 2)
    if kernel.name == "rbf":
        return h, h / -2, None
    rough, bend, _ = _matern52_terms(r2)
    return kernel.between(h, rough), kernel.between(h / -2, bend), rough - h


def squared_distance(
    Z: Float[Array, "... n D"], Y: Float[Array, "... m D"]
) -> Float[Array, "... n m"]:
    """r² between scaled points by one matrix product, never negative.

    The floor at zero takes off round-off without cutting the gradient, which is exact.
    """
    r2 = (
        jnp.sum(Z * Z, -1)[..., :, None]
        + jnp.sum(Y * Y, -1)[..., None, :]
        - 2 * Z @ jnp.swapaxes(Y, -1, -2)
    )
    return r2 + jax.lax.stop_gradient(jnp.maximum(r2, 0) - r2)


def cross(
    kernel: Correlation,
    scale: Float[Array, "M D"],
    outputscale: Float[Array, " M"],
    X: Float[Array, "*batch q D"],
    Y: Float[Array, "*other n D"],
) -> Float[Array, "M q n"]:
    """k(X, Y) under each of M sets; X and Y are shared (q, D) or one a set (M, q, D).

    Points are centred on the cube first: r² then loses less to round-off at short length scales.
    """
    inverse = 1 / scale[:, None, :]
    r2 = squared_distance((X - 0.5) * inverse, (Y - 0.5) * inverse)
    return outputscale[:, None, None] * correlation(kernel, r2)


def frequencies(
    kernel: Correlation,
    normal: Float[Numbers, "M F D"],
    chi2: Float[Numbers, "M F"],
    coin: Float[Numbers, "M F"],
    scale: Float[Array, "M D"],
) -> Float[Array, "M F D"]:
    """Draws from the kernel's spectral density, in radians a unit of x.

    They are made of standard normals and, for Matérn-5/2, of χ² with 5 degrees of freedom. In
    `mixed`, a uniform number below ρ makes one of Matérn's.
    """
    omega = jnp.asarray(normal) / scale[:, None, :]
    if kernel.name == "rbf":
        return omega
    wider = jnp.sqrt(5 / jnp.asarray(chi2))  # t, 5 degrees of freedom: a normal over √(χ²₅ / 5)
    if kernel.name == "mixed":
        assert kernel.rough is not None
        wider = jnp.where(coin < kernel.rough[:, None], wider, 1.0)
    return omega * wider[..., None]
