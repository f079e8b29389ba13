"""Optuna's distributions as a `Space`, and trials as points of its cube."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
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
from optpair.integrations.optuna.steps import STEP, Steps
from optpair.problem.defaults import WHOLE
from optpair.problem.limits import Limits
from optpair.problem.space import Categorical, Float, Int, Ordinal, Parameter, Space

NO_LIMITS = Limits()
NOTHING: Mapping[str, Any] = MappingProxyType({})


def to_parameter(distribution: BaseDistribution) -> Parameter | None:
    """The parameter of a `Space` for a distribution; None if there is nothing to model.

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


def to_distribution(name: str, given: object) -> BaseDistribution:
    """Optuna's word for a parameter; a distribution is one already."""
    if isinstance(given, BaseDistribution):
        return given
    if not isinstance(given, Parameter):
        raise TypeError(
            f"search_space has {name!r}: {given!r:.80}, and must have distributions of Optuna, or "
            "parameters like Float(0, 1)"
        )
    if isinstance(given, Categorical):
        return CategoricalDistribution(given.choices)
    if isinstance(given, Ordinal):
        return CategoricalDistribution(given.levels)
    last = given._decode([1.0])  # Optuna wants the highest legal value as the bound
    if isinstance(given, Int):
        return IntDistribution(given.low, int(last), log=given.log, step=given.step)
    step = given.step if given.digits is None or given.log else float(f"1e-{given.digits}")
    return FloatDistribution(given.low, last, log=given.log, step=step)


@dataclass(frozen=True)
class SearchSpace:
    """What a sampler was given as the space of its studies, in Optuna's words and in ours."""

    distributions: Mapping[str, BaseDistribution]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    """Those that were given as parameters of ours."""
    limits: Limits = NO_LIMITS
    shelf: Space | None = None
    """The space, where it is one of rows."""

    @classmethod
    def of(cls, given: Mapping[str, BaseDistribution | Parameter]) -> SearchSpace:
        """From distributions, parameters, or a `Space`."""
        distributions = {name: to_distribution(name, own) for name, own in given.items()}
        own = {name: p for name, p in given.items() if isinstance(p, Parameter)}
        if not isinstance(given, Space):
            return cls(distributions, own)
        return cls(distributions, own, given.limits, given if given.shelf is not None else None)

    @property
    def once(self) -> bool:
        """Whether there are rows, of which each is tried once at most."""
        shelf = None if self.shelf is None else self.shelf.shelf
        return shelf is not None and not shelf.repeat


def _ordered(name: str, distribution: BaseDistribution) -> Ordinal | None:
    """Choices that are numbers, in their order; None where there is only one."""
    if not isinstance(distribution, CategoricalDistribution):
        raise ValueError(
            f"ordinals names {name!r}, which is not categorical: leave it out of ordinals"
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
    `given` are those that are known as parameters of ours; `shelf` is the space, where it is one of
    rows. With `steps` the space has them as a fidelity, its last column.
    """

    def __init__(
        self,
        distributions: Mapping[str, BaseDistribution],
        ordinals: Collection[str] = (),
        limits: Limits = NO_LIMITS,
        guesses: Mapping[str, tuple[Any, float | None]] = NOTHING,
        learnt: Learnt | None = None,
        given: Mapping[str, Parameter] = NOTHING,
        shelf: Space | None = None,
        steps: Steps | None = None,
    ) -> None:
        self._given, self._shelf = given, shelf
        self.steps = None if shelf is not None else steps
        self.learnt = {} if learnt is None else learnt
        self._single = {n: only_value(d) for n, d in distributions.items() if d.single()}
        self._limits = limits
        parameters: dict[str, Parameter | None] = {
            name: given[name]
            if name in given
            else _ordered(name, d)
            if name in ordinals
            else to_parameter(d)
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
        if self._shelf is not None:
            return self._shelf
        limits, function = self._limits.fixed(self._single), self._limits.function
        if function is not None:
            limits = replace(limits, function=self.with_names(function))
        step = {} if self.steps is None else {STEP: self.steps.fidelity}
        return Space({**self._parameters, **step}, limits)

    def with_names(self, function: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
        """The user's function of parameters, for values of the space."""

        def named(values: Mapping[str, Any]) -> Any:
            own = {name: value for name, value in values.items() if name in self.distributions}
            return function(self._single | self._named(own))

        return named

    @cached_property
    def choices(self) -> dict[str, tuple[Any, ...]]:
        """The categories behind the space's numbers."""
        known = self.distributions.items()
        return {
            n: d.choices
            for n, d in known
            if isinstance(d, CategoricalDistribution)
            and isinstance(self._parameters[n], Categorical)
            and n not in self._given
        }

    def encode(
        self,
        params: Mapping[str, Any],
        step: int | None = None,
        *,
        anywhere: bool = False,
    ) -> np.ndarray | None:
        """The point of the cube; None where a parameter is missing or outside its range.

        It is at the last of the steps, where there are some, unless another is given. What was
        really run may be `anywhere`: between levels, or outside the range.
        """
        try:
            return self._encode(params, step, anywhere)
        except (KeyError, TypeError, ValueError):
            return None

    def _encode(self, params: Mapping[str, Any], step: int | None, anywhere: bool) -> np.ndarray:
        own = {n: self._numbered(n, params[n]) for n in self.distributions if n in params}
        if self.steps is not None:
            own[STEP] = self.steps.count if step is None else step
        for name in self.space.targets.keys() & own.keys():  # nothing is looked at beyond its range
            self.space[name]._check(name, own[name])
        return self.space.encode(self.space.conditions.active(own), anywhere=anywhere)

    def refusal(self, params: Mapping[str, Any]) -> str:
        """Why parameters that were really run have no place on the cube; "" where they have one."""
        try:
            self._encode(params, None, True)
        except (KeyError, TypeError, ValueError) as error:
            return str(error)
        return ""

    def columns(self, given: Mapping[str, Any]) -> dict[int, float]:
        """What the columns of some parameters hold that are given, and not chosen.

        Of those that are no `Context`, nothing where parameters depend on others, or where only
        rows exist. Nothing at all where a value has no place.
        """
        held = self.space.contexts
        if not self.space.conditions and self.space.shelf is None:
            held = tuple(self.distributions)
        known = {n: v for n, v in given.items() if n in held}
        try:
            own = {n: self.space[n]._check(n, self._numbered(n, v)) for n, v in known.items()}
            return self.space.columns_of(own)
        except (TypeError, ValueError):
            return {}

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
        values = self.space.decode(x)
        if self.steps is not None:
            del values[STEP]
        return self._named(values)

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
