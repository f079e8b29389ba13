"""Optuna's distributions as a `Space`, and trials as points of its cube."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from optpair.problem.defaults import WHOLE
from optpair.problem.space import Categorical, Float, Int, Parameter, Space


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


def only_value(distribution: BaseDistribution) -> Any:
    """The value of a distribution that has only one."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return distribution.low


class Domain:
    """The parameters that are modelled, with their distributions."""

    def __init__(self, distributions: Mapping[str, BaseDistribution]) -> None:
        parameters = {name: to_parameter(d) for name, d in distributions.items()}
        self.distributions = {n: d for n, d in distributions.items() if parameters[n] is not None}
        self._parameters = {n: p for n, p in parameters.items() if p is not None}

    @cached_property
    def space(self) -> Space:
        """The space; an error where nothing is modelled."""
        return Space(self._parameters)

    @property
    def choices(self) -> dict[str, tuple[Any, ...]]:
        """The categories that stand behind the space's numbers."""
        known = self.distributions.items()
        return {n: d.choices for n, d in known if isinstance(d, CategoricalDistribution)}

    def encode(self, params: Mapping[str, Any]) -> np.ndarray | None:
        """The point of the cube; None where a parameter is missing or outside its range."""
        try:
            return self.space.encode(
                {name: _numbered(d, params[name]) for name, d in self.distributions.items()}
            )
        except (KeyError, TypeError, ValueError):
            return None

    def decode(self, x: np.ndarray) -> dict[str, Any]:
        """The values that a point of the cube stands for."""
        values: dict[str, Any] = self.space.decode(x)
        return {name: _named(d, values[name]) for name, d in self.distributions.items()}


def _numbered(distribution: BaseDistribution, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return int(distribution.to_internal_repr(value))
    return value


def _named(distribution: BaseDistribution, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[value]
    return value
