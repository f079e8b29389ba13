"""Optuna's distributions as a `Space`, and trials as points of its cube."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from optpair.integrations.optuna.conditions import Learnt
from optpair.problem.defaults import WHOLE
from optpair.problem.limits import Limits
from optpair.problem.space import Categorical, Float, Int, Ordinal, Parameter, Space

NO_LIMITS = Limits()
NOTHING: Mapping[str, Any] = MappingProxyType({})


def to_parameter(distribution: BaseDistribution) -> Parameter | None:
    """What stands for a distribution in a `Space`; None where there is nothing to model.

    That is one legal value, or a range that float64 cannot resolve. Choices, which may be any
    objects, are numbered.
    """
    d = distribution
    if d.single() or (isinstance(d, IntDistribution) and max(-d.low, d.high) > WHOLE):
        return None
    try:
        if isinstance(d, FloatDistribution):
            return Float(d.low, d.high, log=d.log, step=d.step)
        if isinstance(d, IntDistribution):
            return Int(d.low, d.high, log=d.log, step=d.step)
        if isinstance(d, CategoricalDistribution):
            return Categorical(range(len(d.choices)))
    except ValueError:
        pass
    return None


def _ordered(name: str, distribution: BaseDistribution) -> Ordinal | None:
    """Choices that are numbers, in their order; None where there is only one."""
    if not isinstance(distribution, CategoricalDistribution):
        raise ValueError(
            f"ordinals names {name!r}, which is no categorical parameter: leave it out there"
        )
    if distribution.single():
        return None
    try:
        return Ordinal(distribution.choices)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"ordinals names {name!r}, whose choices have no order: {error}"
        ) from error


def only_value(distribution: BaseDistribution) -> Any:
    """The value of a distribution that has only one."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return distribution.low


class Domain:
    """The parameters that are modelled, with their distributions.

    `ordinals` are the categorical ones whose choices are numbers in order. `guesses` are values,
    each with how sure it is, of some of them. `learnt` says which are there only with others.
    """

    def __init__(
        self,
        distributions: Mapping[str, BaseDistribution],
        ordinals: Collection[str] = (),
        limits: Limits = NO_LIMITS,
        guesses: Mapping[str, tuple[Any, float | None]] = NOTHING,
        learnt: Learnt | None = None,
    ) -> None:
        self.learnt = {} if learnt is None else learnt
        self._single = {n: only_value(d) for n, d in distributions.items() if d.single()}
        self._limits = limits
        parameters: dict[str, Parameter | None] = {
            name: _ordered(name, d) if name in ordinals else to_parameter(d)
            for name, d in distributions.items()
        }
        self.distributions = {n: d for n, d in distributions.items() if parameters[n] is not None}
        self._parameters = {n: p for n, p in parameters.items() if p is not None}
        for name, (guess, sure) in guesses.items():
            if name in self._parameters:
                own = self._numbered(name, guess)
                self._parameters[name] = replace(self._parameters[name], guess=own, sure=sure)
        for name, (parent, values) in self.learnt.items():
            if name in self._parameters and parent in self._parameters:
                when = {parent: [self._legal(parent, value) for value in values]}
                self._parameters[name] = replace(self._parameters[name], when=when)

    def _legal(self, name: str, internal: float) -> Any:
        """A value of the space, from one as Optuna stores it."""
        return self._numbered(name, self.distributions[name].to_external_repr(internal))

    @cached_property
    def space(self) -> Space:
        """The space; an error where nothing is modelled."""
        limits, function = self._limits.fixed(self._single), self._limits.function
        if function is not None:

            def named(values: dict[str, Any]) -> bool:
                return function(self._single | self._named(values))

            limits = replace(limits, function=named)
        return Space(self._parameters, limits)

    @cached_property
    def choices(self) -> dict[str, tuple[Any, ...]]:
        """The categories that stand behind the space's numbers."""
        known = self.distributions.items()
        return {
            n: d.choices
            for n, d in known
            if isinstance(d, CategoricalDistribution)
            and isinstance(self._parameters[n], Categorical)
        }

    def encode(self, params: Mapping[str, Any]) -> np.ndarray | None:
        """The point of the cube; None where a parameter is missing or outside its range."""
        try:
            own = {n: self._numbered(n, params[n]) for n in self.distributions if n in params}
            return self.space.encode(self.space.conditions.active(own))
        except (KeyError, TypeError, ValueError):
            return None

    def constants(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters with one value only that are there, given the others."""
        found = {}
        for name, value in self._single.items():
            parent, values = self.learnt.get(name, ("", ()))
            if not parent or (parent in params and self._internal(parent, params) in values):
                found[name] = value
        return found

    def _internal(self, name: str, params: Mapping[str, Any]) -> float:
        return self.distributions[name].to_internal_repr(params[name])

    def decode(self, x: np.ndarray) -> dict[str, Any]:
        """The values that a point of the cube stands for."""
        return self._named(self.space.decode(x))

    def _named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """With the categories themselves."""
        return {
            name: self.choices[name][v] if name in self.choices else v for name, v in values.items()
        }

    def _numbered(self, name: str, value: Any) -> Any:
        """The number of a category, and any other value as it is."""
        if name not in self.choices:
            return value
        return int(self.distributions[name].to_internal_repr(value))
