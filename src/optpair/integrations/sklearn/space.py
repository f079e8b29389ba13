"""Spaces as scikit-learn's users write them: parameters, lists, arrays, SciPy's distributions."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optpair.found import Recommendation
from optpair.front import Front
from optpair.problem.space import Categorical, Context, Float, Int, Ordinal, Parameter, Space
from optpair.trials.trial import Trial

Choices = Parameter | Sequence[Any]

UNIFORM, LOG_UNIFORM, WHOLE = {"uniform"}, {"loguniform", "reciprocal"}, {"randint"}
"""SciPy's names of the distributions that say no more than a range and a scale."""


class NumberedSpace:
    """The user's space: lists of any objects stand in it by their places."""

    def __init__(self, given: Space | Mapping[str, Choices]) -> None:
        if not isinstance(given, Mapping):
            raise TypeError(
                f"space must be a Space or a dict like {{'alpha': Float(0, 1)}}, not {given!r}"
            )
        self._names = tuple(given)
        self._lists: dict[str, list[Any]] = {}
        tuned: dict[str, Any] = {}
        for name, p in given.items():
            if isinstance(p, Context):
                raise ValueError(
                    f"{name!r} is a Context, but a search chooses all that an estimator is given; "
                    "make it a Float or Categorical, or ask and tell: Optimizer.ask(context=…)"
                )
            found = _read(name, p)
            if not isinstance(found, list):
                tuned[name] = found
                continue
            self._lists[name] = found
            if len(found) > 1:
                tuned[name] = _ordered(found) or Categorical(range(len(found)))
        limits = given.limits if isinstance(given, Space) else ()
        self.space = Space(tuned, limits)

    def named(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What the estimator is given."""
        active = [n for n in self._names if n in params or n not in self.space]
        return {n: self._own(n, params) for n in active}

    def _own(self, name: str, params: Mapping[str, Any]) -> Any:
        objects = self._lists.get(name)
        if objects is None:
            return params[name]
        if name not in self.space:
            return objects[0]
        if isinstance(self.space[name], Ordinal):
            return next(each for each in objects if each == params[name])
        return objects[params[name]]

    def served(self, found: Recommendation | Front) -> Any:
        """The same, with the objects themselves."""
        if isinstance(found, Front):
            return replace(
                found,
                points=tuple(replace(p, params=self.named(p.params)) for p in found.points),
                observed=tuple(self._trial(trial) for trial in found.observed),
            )
        return replace(found, params=self.named(found.params), observed=self._trial(found.observed))

    @property
    def labels(self) -> dict[str, list[str]]:
        """Words for the objects that stand by their places, as a page shows them."""
        tuned = {n: o for n, o in self._lists.items() if isinstance(self.space.get(n), Categorical)}
        return {name: _words(objects) for name, objects in tuned.items()}

    @property
    def single(self) -> dict[str, str]:
        """Words for what is given as it is."""
        return {n: _words(o)[0] for n, o in self._lists.items() if n not in self.space}

    def _trial(self, trial: Trial) -> Trial:
        return replace(trial, params=self.named(trial.params))


def _words(objects: Sequence[Any]) -> list[str]:
    """A line for each object; of those that look alike, each after the first has its place."""
    lines = [each if isinstance(each, str) else " ".join(repr(each).split()) for each in objects]
    return [line if line not in lines[:i] else f"{line} [{i}]" for i, line in enumerate(lines)]


def _read(name: str, given: Any) -> Any:
    """A parameter, or a list of objects to choose from."""
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if isinstance(given, tuple) and len(given) == 2 and _ordered(list(given)):
        low, high = sorted(given)
        raise ValueError(
            f"space: {name!r} is {given!r}: is it a range? Write Float({low!r}, {high!r}), with "
            f"log=True where it spans orders of magnitude, or Int; two choices are a list: "
            f"{list(given)!r}"
        )
    if isinstance(given, list | tuple | range):
        if not given:
            raise ValueError(f"space: {name!r} must have something to choose from, not []")
        return list(given)
    if hasattr(given, "rvs"):
        return _of_distribution(name, given)
    # A copy, as a space keeps what it has worked out, and `fit` leaves its parameters alone.
    return copy.deepcopy(given)


def _ordered(objects: list[Any]) -> Ordinal | None:
    """Numbers that differ, in their order; None where something else is among them."""
    try:
        return Ordinal(objects)
    except (TypeError, ValueError):
        return None


def _of_distribution(name: str, given: Any) -> Parameter:
    """The range and scale of a frozen distribution of SciPy, where it says no more than that."""
    kind = getattr(getattr(given, "dist", None), "name", type(given).__name__)
    try:
        low, high = (float(end) for end in given.support())
    except (AttributeError, TypeError, ValueError):
        low, high = np.nan, np.nan
    if kind in UNIFORM:
        return Float(low, high)
    if kind in LOG_UNIFORM:
        return Float(low, high, log=True)
    if kind in WHOLE:
        return Int(int(low), int(high))
    raise ValueError(
        f"space: {name!r} is SciPy's {kind}, which is not understood: uniform, loguniform and "
        "randint are. Give the range and the scale instead: Float(low, high), with log=True where "
        "it spans orders of magnitude, Int(low, high), or a list"
    )
