"""Columns of the unit cube for parameters, and what they hold for values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from optpair.problem.conditions import Conditions
from optpair.problem.layout import Column, Grid, Layout
from optpair.problem.parameters import Categorical, Parameter, Value, width


def layout_of(parameters: Mapping[str, Parameter], conditions: Conditions) -> Layout:
    """The columns of the unit cube for some parameters."""
    owner: list[int] = []
    stepped: list[int] = []
    groups: list[tuple[int, int]] = []
    grids: dict[int, Grid] = {}
    first: dict[str, int] = {}
    rows: list[Column] = []
    for index, (name, p) in enumerate(parameters.items()):
        first[name] = len(rows)
        start, columns, column = len(rows), width(p), None
        if isinstance(p, Categorical):
            groups.append((start, start + columns))
        else:
            column = p._column
        if column is not None:
            stepped.append(start)
            if column.grid is not None:
                grids[start] = column.grid
        owner += [index] * columns
        rows += [column or Column()] * columns
    last, offset, log = (np.array([getattr(r, n) for r in rows]) for n in Column._fields[:3])
    return Layout(
        last,
        offset,
        log,
        tuple(owner),
        tuple(stepped),
        tuple(groups),
        grids,
        conditions.columns(parameters, first),
    )


def accept(p: Parameter, name: str, value: object) -> Value:
    """A legal value or, where it is none, one that has a place all the same."""
    try:
        return p._check(name, value)
    except ValueError:
        return p._accept(name, value)


def place(p: Parameter, name: str, value: Any) -> list[float]:
    """The place of an accepted value, legal or not."""
    try:
        return p._encode(p._check(name, value))  # type: ignore[arg-type]
    except ValueError:
        return p._place(value)
