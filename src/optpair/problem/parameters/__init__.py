"""Parameters: the user's values ↔ columns of the unit cube, one kind per module."""

from __future__ import annotations

import dataclasses
from typing import Any

from optpair.problem.parameters.base import Value
from optpair.problem.parameters.categories import Categorical
from optpair.problem.parameters.contexts import Context, ContextChoices, ContextRange
from optpair.problem.parameters.fidelities import (
    Fidelity,
    FidelityFloat,
    FidelityInt,
    Price,
)
from optpair.problem.parameters.floats import Float
from optpair.problem.parameters.ints import Int
from optpair.problem.parameters.ordinals import Ordinal

Parameter = Float | Int | Ordinal | Categorical
_PLAIN = (Float, Int, Ordinal, Categorical)
_ROLES = (ContextChoices, ContextRange, FidelityInt, FidelityFloat)
KINDS = {kind.__name__: kind for kind in (*_PLAIN, *_ROLES)}

__all__ = [
    "KINDS",
    "Categorical",
    "Context",
    "Fidelity",
    "Float",
    "Int",
    "Ordinal",
    "Parameter",
    "Price",
    "Value",
    "parameter_to_json",
    "width",
]


def parameter_to_json(p: Parameter) -> dict[str, Any]:
    """Its kind and what it was made with, ready for JSON; later fields only if given."""
    fields = {f.name: getattr(p, f.name) for f in dataclasses.fields(p) if f.init}
    fields = {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}
    for name in ("digits", "guess", "sure", "when"):
        if fields.get(name, 0) is None:
            del fields[name]
    if "when" in fields:
        fields["when"] = {parent: list(values) for parent, values in fields["when"].items()}
    return {"kind": type(p).__name__} | fields


def width(p: Parameter) -> int:
    """The number of columns in the cube."""
    return len(p.choices) if isinstance(p, Categorical) else 1
