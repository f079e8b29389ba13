"""Beliefs: where the user expects the optimum, and what it may be worth.

Guesses hold or fail together: whoever is wrong about one parameter may be wrong about others.
With s_i how sure the guess g_i of the i-th is, and u_i the number on the scale of that parameter,

    (B1)  π(x) = (1 − s) + s Π_i [(1 − s_i/s) + (s_i/s) p_i(u_i)],   s = max s_i

is the density beside one that knows nothing, where p_i is normal around g_i with a standard
deviation of w = 1/10 of the range, cut off at its ends, or k for the guessed one of k categories,
and else 0. Each guess holds with its own chance s_i. With chance 1 − s none does: a point that
agrees with some of the guesses counts no more than any other, so that what is believed wrongly
costs little. The best value, guessed to be between two ends, has (1 − s) + s φ((f − g)/w)/w in
units of ten w, with their middle for g and half of their distance for w.
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
from optpair.runtime.shapes import Bool, Float

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
    asleep: Float[np.ndarray, " k"] | None = None
    """Where its columns are while it is inactive, if it may be."""

    @property
    def columns(self) -> slice:
        """Its columns of the cube."""
        return slice(self.first, self.first + len(self.centre))

    def near(self, X: Float[np.ndarray, "n D"]) -> Bool[np.ndarray, " n"]:
        """Which points agree: within two standard deviations, or in the category."""
        far = np.max(np.abs(X[:, self.columns] - self.centre), axis=1)
        return np.asarray(far <= (1e-9 if self.category else 2 * WIDTH))

    def density(self, X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, " n"]:
        """p, beside a density that knows nothing; of an inactive parameter nothing is said."""
        said = self._density(X)
        if self.asleep is None:
            return said
        return np.where(np.all(X[:, self.columns] == self.asleep, axis=1), 1.0, said)

    def _density(self, X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, " n"]:
        if self.category:
            chosen = np.argmax(X[:, self.columns], axis=1) == np.argmax(self.centre)
            return len(self.centre) * np.asarray(chosen, dtype=np.float64)
        g = self.centre[0]
        inside = _below((1 - g) / WIDTH) - _below(-g / WIDTH)
        return _normal((X[:, self.first] - g) / WIDTH) / (WIDTH * inside)


def _below(z: float) -> float:
    """Φ(z)."""
    return 0.5 * (1 + math.erf(z / math.sqrt(2)))


def _normal(z: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    return np.asarray(np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi))


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
                asleep = space.layout.asleep[first : first + len(centre)] if p.when else None
                guesses.append(Guess(name, first, centre, p.sure, category, asleep))
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

    @property
    def sure(self) -> float:
        """The chance that guesses hold at all: that of the surest."""
        return max((guess.sure for guess in self.guesses), default=0.0)

    def log_density(self, X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, " n"]:
        """log π of points, up to a constant where a function says it."""
        together = np.ones(len(X))
        for guess in self.guesses:
            share = guess.sure / self.sure
            together *= (1 - share) + share * guess.density(X)
        total = np.log((1 - self.sure) + self.sure * together)  # (B1)
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
        sure = self.value.sure
        return np.log(WIDTH * (1 - sure) + sure * _normal(np.clip(z, -1e3, 1e3)))

    def drawn(
        self, rng: np.random.Generator, X: Float[np.ndarray, "n D"]
    ) -> Float[np.ndarray, "n D"]:
        """Points that are believed in, from points that fill the space; they may not be legal.

        What guesses are sure of moves near them, all of it or none. Of a function, points are drawn
        by what it says.
        """
        X = X.copy()
        coin = rng.uniform(size=len(X)) < self.sure
        for guess in self.guesses:
            moved = coin & (rng.uniform(size=len(X)) < guess.sure / self.sure)
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
