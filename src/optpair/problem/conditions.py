"""Conditions: which parameters are active, given the values of others.

A parameter with `when={"kernel": "poly"}` is active if the parameter `kernel` is active and has one
of these values; with several names in `when`, if all of them do. Points hold active parameters
only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optpair.problem.layout import Condition
from optpair.problem.parameters import (
    Categorical,
    Context,
    Fidelity,
    Float,
    Int,
    Parameter,
    Value,
)

When = dict[str, tuple[Value, ...]]


class Conditions:
    """The conditions of a space's parameters, checked; parents come before what depends on them."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self.when: dict[str, When] = {}
        for name, p in parameters.items():
            if p.when:
                self.when[name] = {
                    parent: _values(name, parent, values, parameters)
                    for parent, values in p.when.items()
                }
        self.order = self._ordered(parameters)

    def _ordered(self, parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
        """The names, each after those that it depends on."""
        order = [name for name in parameters if name not in self.when]
        left = [name for name in parameters if name in self.when]
        while left:
            ready = [name for name in left if all(parent in order for parent in self.when[name])]
            if not ready:
                raise ValueError(
                    f"when: {', '.join(map(repr, left))} depend on each other in a circle; one of "
                    "them must be there without the others"
                )
            order += ready
            left = [name for name in left if name not in ready]
        return tuple(order)

    @property
    def parents(self) -> frozenset[str]:
        """The parameters that others depend on."""
        return frozenset(parent for when in self.when.values() for parent in when)

    def __bool__(self) -> bool:
        return bool(self.when)

    def holds(self, name: str, values: Mapping[str, Any]) -> bool:
        """Whether a parameter is active, given the values of active ones before it."""
        return all(
            parent in values and _among(values[parent], allowed)
            for parent, allowed in self.when.get(name, {}).items()
        )

    def active(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of active parameters alone, in the order that they were given in."""
        known: dict[str, Any] = {}
        for name in self.order:
            if name in values and self.holds(name, known):
                known[name] = values[name]
        return {name: value for name, value in values.items() if name in known}

    def reason(self, name: str) -> str:
        """When a parameter is there, in words."""
        parts = []
        for parent, values in self.when[name].items():
            several = "one of " if len(values) > 1 else ""
            parts.append(f"{parent} is {several}{', '.join(map(repr, values))}")
        return " and ".join(parts)

    def columns(
        self, parameters: Mapping[str, Parameter], first: Mapping[str, int]
    ) -> tuple[Condition, ...]:
        """The conditions on the cube, parents first; `first` has each parameter's first column."""
        index = {name: i for i, name in enumerate(parameters)}
        return tuple(
            Condition(index[name], index[parent], first[parent], _levels(parameters[parent], own))
            for name in self.order
            for parent, own in self.when.get(name, {}).items()
        )


def _values(
    name: str, parent: str, values: tuple[Value, ...], parameters: Mapping[str, Parameter]
) -> tuple[Value, ...]:
    """What a parent may be, as legal values of its own."""
    if parent not in parameters or parent == name:
        others = ", ".join(repr(other) for other in parameters if other != name)
        raise ValueError(
            f"when of {name!r} names {parent!r}, which is not another parameter of the space; it "
            f"has {others or 'no other'}"
        )
    p = parameters[parent]
    if isinstance(p, Context | Fidelity):
        kind = "Context" if isinstance(p, Context) else "Fidelity"
        raise ValueError(
            f"when of {name!r} names {parent!r}, a {kind}: parameters can depend only on what is "
            "tuned; leave `when` out"
        )
    if isinstance(p, Float) and p._column is None:
        raise ValueError(
            f"when of {name!r} names {parent!r}, which may be any number in a range: give it a "
            "step, or make it Categorical, Ordinal or Int"
        )
    return tuple(p._check(f"when of {name!r}: {parent}", value) for value in values)


def _levels(p: Parameter, values: tuple[Value, ...]) -> tuple[int, ...]:
    """The numbers of choices, or of levels."""
    if isinstance(p, Categorical):
        typed = [(type(choice), choice) for choice in p.choices]
        return tuple(typed.index((type(value), value)) for value in values)
    if isinstance(p, Int):
        return tuple((int(value) - p.low) // p.step for value in values)  # type: ignore[arg-type]
    column = p._column
    assert column is not None
    places = [p._encode(value)[0] for value in values]  # type: ignore[arg-type]
    if column.grid is not None:
        return tuple(column.grid.at.tolist().index(place) for place in places)
    return tuple(round(place * column.last) for place in places)


def _among(value: object, allowed: tuple[Value, ...]) -> bool:
    """Whether a value is one of some, told apart by type where True and 1 would be the same."""
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed)
