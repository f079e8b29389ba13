"""Acquisition functions of your own: functions of (mean, variance), or of a context.

    def bound(mean, variance):
        return mean + 2 * np.sqrt(variance)

    Optimizer(space, acquisition=bound)

A function of two arguments is called with the posterior's mean m and variance s (never 0) at some
points: two arrays of one shape, whatever that is. It returns as many values, entry by entry, or
`(values, by_mean, by_variance)` with their derivatives; without those, derivatives are taken by
central differences. Values are averaged over hyperparameter sets and fantasies, and maximised. Both
moments are those of the objective as the engine sees it: standardised, and to be maximised.

A function of one argument is given a `Context`, and returns an `Acquisition`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optpair.acquisition.base import Acquisition, Context, OfMoments, Partials, bounded
from optpair.gp.posterior import Posterior
from optpair.runtime.shapes import Float

STEP = float(np.finfo(np.float64).eps) ** (1 / 3)  # of central differences, relative

Function = Callable[..., Any]
Build = Callable[[Context], Acquisition]
Each = Float[np.ndarray, "M F q"]


@dataclass(frozen=True, repr=False)
class OfFunction(OfMoments):
    """The mean over sets and fantasies of a function of m(x) and s(x)."""

    posterior: Posterior
    function: Function

    def of_moments(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Float[np.ndarray, " q"]:
        """The function's values."""
        return np.asarray(self._call(means, self._spread(means, variance))[0].mean((0, 1)))

    def partials(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Partials:
        """The function's values and derivatives, its own or by central differences."""
        s = self._spread(means, variance)
        values, *slopes = self._call(means, s)
        by_mean, by_variance = slopes or self._differences(means, s)
        _, free = bounded(self.posterior, variance)
        count = means.shape[0] * means.shape[1]
        return Partials(values.mean((0, 1)), by_mean / count, by_variance.sum(1) / count * free)

    def _spread(self, means: Each, variance: Float[np.ndarray, "M q"]) -> Each:
        return np.broadcast_to(bounded(self.posterior, variance)[0][:, None], means.shape)

    def _differences(self, means: Each, variance: Each) -> list[Each]:
        """Derivatives by m, with steps relative to √s, and by s, relative to itself."""
        step = STEP * np.maximum(np.sqrt(variance), STEP * np.abs(means))
        up, down = means + step, means - step
        by_mean = (self._call(up, variance)[0] - self._call(down, variance)[0]) / (up - down)
        up, down = variance * (1 + STEP), variance * (1 - STEP)
        by_variance = (self._call(means, up)[0] - self._call(means, down)[0]) / (up - down)
        return [by_mean, by_variance]

    def _call(self, means: Each, variance: Each) -> list[Each]:
        """Values, and derivatives where the function gives them; it may write on what it gets."""
        given = self.function(means.copy(), variance.copy())
        parts = given if isinstance(given, tuple) else (given,)
        if len(parts) not in (1, 3):
            raise ValueError(
                f"the acquisition function {name_of(self.function)} must return values, or values "
                f"and derivatives by mean and variance, not a tuple of {len(parts)}"
            )
        names = ("values", "derivatives by mean", "derivatives by variance")
        return [
            self._checked(name, part, means.shape) for name, part in zip(names, parts, strict=False)
        ]

    def _checked(self, name: str, part: Any, shape: tuple[int, ...]) -> Each:
        array = np.asarray(part, dtype=np.float64)
        if array.shape != shape:
            raise ValueError(
                f"the acquisition function {name_of(self.function)} returned {name} of shape "
                f"{array.shape}; they must have the shape of mean and variance, here {shape}"
            )
        if np.isnan(array).any():
            raise ValueError(
                f"the acquisition function {name_of(self.function)} returned {name} that are NaN, "
                f"{int(np.isnan(array).sum())} of {array.size}; they must be numbers for any mean "
                "and any variance above 0"
            )
        return array


def arguments(function: Function) -> int:
    """How many arguments a function needs, 1 (context) or 2 (mean, variance), or an error."""
    accepted = (
        f"the acquisition function {name_of(function)} must take one argument (context) "
        "or two (mean, variance)"
    )
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise TypeError(f"{accepted}, but does not say what it takes: wrap it in a def") from None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in signature.parameters.values() if p.default is p.empty]
    if len(needed) not in (1, 2) or any(p.kind not in positional for p in needed):
        raise TypeError(f"{accepted}, not {signature}; give others a default")
    return len(needed)


def builder(function: Function) -> Build:
    """How the engine builds an acquisition function from a user's own."""
    if arguments(function) == 2:
        return lambda context: OfFunction(context.posterior, function)

    def build(context: Context) -> Acquisition:
        built = function(context)
        if not isinstance(built, Acquisition):
            raise TypeError(
                f"the acquisition function {name_of(function)} of a context must return an "
                f"Acquisition, not {type(built).__name__}; a function of the posterior's moments "
                "takes two arguments (mean, variance)"
            )
        return built

    return build


def name_of(function: Function) -> str:
    """What to call a function."""
    return getattr(function, "__qualname__", repr(function))
