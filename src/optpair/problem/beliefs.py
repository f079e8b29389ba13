"""Beliefs: where the user expects the optimum, and what it may be worth.

With g a guess and s how sure it is, a number u on the scale of its parameter has the density

    (B1)  π(u) = (1 − s) + s φ((u − g)/w)/w,   w = 1/10 of the range

and a category c of k the chance (1 − s)/k + s [c = g]: with chance 1 − s the guess says nothing.
The best value, guessed to be between two ends, has the same with their middle for g, half of their
distance for w, and ten of these for the range. What is believed of several is a product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optpair.problem.outcomes import Objective
from optpair.problem.parameters import Categorical, width
from optpair.problem.space import Space
from optpair.shapes import Bool, Float

WIDTH = 0.1  # of the range: the standard deviation of a guess
LEAST = -700.0  # a logarithm of a density below which nothing is believed less

Belief = Callable[[dict[str, Any]], float]
"""From parameters to the logarithm of a density, up to a constant."""


@dataclass(frozen=True)
class Guess:
    """What is believed of one parameter, in its columns of the cube."""

    name: str
    first: int
    centre: Float[np.ndarray, " k"]
    sure: float
    category: bool

    @property
    def columns(self) -> slice:
        """Its columns of the cube."""
        return slice(self.first, self.first + len(self.centre))

    def near(self, X: Float[np.ndarray, "n D"]) -> Bool[np.ndarray, " n"]:
        """Which points agree: within two standard deviations, or in the category."""
        far = np.max(np.abs(X[:, self.columns] - self.centre), axis=1)
        return np.asarray(far <= (1e-9 if self.category else 2 * WIDTH))

    def log_density(self, X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, " n"]:
        """log π, up to a constant."""
        if self.category:
            chosen = np.argmax(X[:, self.columns], axis=1) == np.argmax(self.centre)
            return np.log((1 - self.sure) / len(self.centre) + self.sure * chosen)
        z = (X[:, self.first] - self.centre[0]) / WIDTH
        return _log_mixture(self.sure, z)


def _log_mixture(sure: float, z: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """log of w π(u), where u is z standard deviations from the guess."""
    return np.log(WIDTH * (1 - sure) + sure * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi))  # (B1)


def agreement(agree: Mapping[str, float]) -> list[str]:
    """What was believed, and what the data say of it."""
    return [
        f"{guess}: {100 * share:.0f} % of the sampled optima agree, by the data alone"
        for guess, share in agree.items()
    ]


@dataclass(frozen=True)
class Beliefs:
    """All that is believed of the optimum."""

    space: Space
    guesses: tuple[Guess, ...]
    function: Belief | None
    value: Objective | None
    """The only objective, where its best value was guessed."""

    @classmethod
    def of(
        cls, space: Space, function: Belief | None, objectives: Mapping[str, Objective]
    ) -> Beliefs:
        """What the parts of a problem say."""
        guesses, first = [], 0
        for name, p in space.items():
            if p.guess is not None:
                assert p.sure is not None
                centre = np.array(p._encode(p.guess))
                category = isinstance(p, Categorical)
                guesses.append(Guess(name, first, centre, p.sure, category))
            first += width(p)
        guessed = [o for o in objectives.values() if o.guess is not None]
        if guessed and len(objectives) > 1:
            raise ValueError(
                "the guess of a best value needs one objective; of several, no single value is best"
            )
        return cls(space, tuple(guesses), function, guessed[0] if guessed else None)

    def __bool__(self) -> bool:
        return bool(self.guesses) or self.function is not None or self.value is not None

    @property
    def placed(self) -> bool:
        """Whether anything is believed of where the optimum is."""
        return bool(self.guesses) or self.function is not None

    def log_density(self, X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, " n"]:
        """log π of points, up to a constant."""
        total = np.zeros(len(X))
        for guess in self.guesses:
            total += guess.log_density(X)
        if self.function is not None:
            total += [self._said(x) for x in X]
        return total

    def _said(self, x: Float[np.ndarray, " D"]) -> float:
        assert self.function is not None
        params = self.space.decode(x)
        said = self.function(params)
        if isinstance(said, bool) or not isinstance(said, int | float | np.floating | np.integer):
            raise TypeError(f"belief must return a number, not {said!r:.80} for {params!r}")
        if math.isnan(said) or said == math.inf:
            raise ValueError(
                f"belief must return the logarithm of a density, a finite number or -inf, not "
                f"{said!r} for {params!r}"
            )
        return max(float(said), LEAST)

    def log_value(self, f: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """log ρ of best values, raw and to be maximised, up to a constant."""
        if self.value is None or self.value.guess is None or self.value.sure is None:
            return np.zeros(f.shape)
        low, high = self.value.guess
        z = (self.value.sign * f - (low + high) / 2) / ((high - low) / 2)
        return _log_mixture(self.value.sure, np.clip(z, -1e3, 1e3))

    def drawn(
        self, rng: np.random.Generator, X: Float[np.ndarray, "n D"]
    ) -> Float[np.ndarray, "n D"]:
        """Points that are believed in, from points that fill the space; they may not be legal.

        What a guess is sure of moves near it. Of a function, points are drawn by what it says.
        """
        X = X.copy()
        for guess in self.guesses:
            moved = rng.uniform(size=len(X)) < guess.sure
            step = 0.0 if guess.category else WIDTH * rng.standard_normal((len(X), 1))
            near = np.clip(guess.centre + step, 0.0, 1.0)
            X[:, guess.columns] = np.where(moved[:, None], near, X[:, guess.columns])
        if self.function is None:
            return X
        said = np.array([self._said(x) for x in X])
        share = np.exp(said - said.max())
        return X[rng.choice(len(X), len(X), p=share / share.sum())]

    def agreeing(self, X: Float[np.ndarray, "L D"], f: Float[np.ndarray, " L"]) -> dict[str, float]:
        """The share of optima, raw and to be maximised, that agree with each guess, in words."""
        said = {}
        for guess in self.guesses:
            value = self.space[guess.name].guess
            shown = f"{value:.5g}" if isinstance(value, float) else repr(value)
            about = "" if guess.category else "about "
            said[f"{guess.name} = {about}{shown} ({100 * guess.sure:.0f} % sure)"] = float(
                np.mean(guess.near(X))
            )
        if self.value is not None and self.value.guess is not None and self.value.sure is not None:
            low, high = self.value.guess
            inside = (self.value.sign * f >= low) & (self.value.sign * f <= high)
            label = f"a best value of {low:.5g} to {high:.5g} ({100 * self.value.sure:.0f} % sure)"
            said[label] = float(np.mean(inside))
        return said

    def centre(self, x: Float[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
        """A point with every guess in it."""
        x = x.copy()
        for guess in self.guesses:
            x[guess.columns] = guess.centre
        return x
