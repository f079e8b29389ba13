"""Spaces: the parameters to tune, by name."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from optpair.problem.columns import accept, layout_of, place
from optpair.problem.conditions import Conditions
from optpair.problem.layout import Layout
from optpair.problem.limits import Limits, Where
from optpair.problem.linear import Rows, check_region
from optpair.problem.parameters import (
    KINDS,
    Categorical,
    Context,
    Fidelity,
    Float,
    Int,
    Ordinal,
    Parameter,
    Price,
    Value,
    parameter_to_json,
    width,
)
from optpair.problem.parameters.contexts import check_context
from optpair.problem.parameters.fidelities import check_look
from optpair.problem.rounding import Rounding
from optpair.problem.shelf import Places, Shelf, read_rows
from optpair.runtime.shapes import Float as Reals

__all__ = ["Categorical", "Context", "Fidelity", "Float", "Int", "Ordinal", "Parameter", "Space"]


class Space(Mapping[str, Parameter]):
    """The parameters to tune, by name, in a fixed order.

    Args:
        parameters: a `Float`, `Int`, `Ordinal` or `Categorical` for each name, a `Context` for
            what is given with each trial, or a `Fidelity` for how closely a trial is looked at. A
            parameter with `when` is active only with certain values of others; points leave it out
            when it is inactive.
        where: limits on the parameters: texts for linear ones, like `"a + b + c == 1"` or
            `"low <= high"`, and a function that returns True or False for the rest. Write names
            that are not valid in Python in backticks. Suggestions and recommendations respect the
            limits; points of your own may break them, and the model still learns from them. Texts
            may name neither a parameter with `when` nor one that others depend on; a function gets
            the active parameters.

    Raises:
        ValueError: if a limit cannot be read, is not linear or has an unknown name, or if no legal
            point meets all of them.

    Examples:
        >>> space = Space({"lr": Float(1e-5, 1, log=True), "act": Categorical(["relu", "tanh"])})
        >>> space.encode({"lr": 1e-5, "act": "tanh"}).round(3).tolist()
        [0.0, 0.0, 0.707]
        >>> space.decode([0.4, 0.7, 0.1])
        {'lr': 0.001, 'act': 'relu'}
        >>> mixture = Space({"a": Float(0, 1), "b": Float(0, 1)}, where=["a + b == 1", "a <= b"])
        >>> mixture.allows({"a": 0.3, "b": 0.7}), mixture.allows({"a": 0.7, "b": 0.3})
        (True, False)
        >>> svm = Space(
        ...     {
        ...         "kernel": Categorical(["rbf", "poly"]),
        ...         "degree": Int(2, 5, when={"kernel": "poly"}),
        ...     }
        ... )
        >>> svm.fits({"kernel": "rbf"}), svm.fits({"kernel": "poly"})
        (True, False)
    """

    def __init__(self, parameters: Mapping[str, Parameter], where: Where | Limits = ()) -> None:
        if not isinstance(parameters, Mapping):
            raise TypeError(f"Space takes a dict like {{'x': Float(0, 1)}}, not {parameters!r}")
        for name, p in dict[Any, Any](parameters).items():
            if not (isinstance(name, str) and name and isinstance(p, Parameter)):
                accepted = "a name with a Float, Int, Ordinal or Categorical"
                raise TypeError(f"Space's entries must be {accepted}, not {name!r}: {p!r}")
        if not parameters:
            raise ValueError("Space needs at least one parameter, not {}: name what to tune")
        if all(isinstance(p, Context | Fidelity) for p in parameters.values()):
            raise ValueError(
                f"Space has nothing to tune: each of {', '.join(map(repr, parameters))} is a "
                "Context or a Fidelity; add a Float, Int, Ordinal or Categorical"
            )
        self._parameters = dict(parameters)
        if isinstance(parameters, Space) and where == ():
            where = parameters.limits
        self.shelf: Shelf | None = None
        """The only rows that exist, if the space is a shelf."""
        if isinstance(parameters, Space):
            self.shelf = parameters.shelf
        self.conditions = Conditions(self._parameters)
        self.limits: Limits = Limits.parse(where).check_names(self._parameters)
        self.limits.check_conditions(self.conditions)
        if self.limits.linear:
            check_region(self.limits.linear, self._parameters, self.layout)

    @classmethod
    def of_rows(
        cls,
        rows: object,
        *,
        columns: Sequence[str] | None = None,
        log: Collection[str] = (),
        repeat: bool = True,
    ) -> Space:
        """A shelf: only these candidates exist, each described by its columns.

        A column of whole numbers is an `Int`, of other numbers a `Float`, of texts or bools a
        `Categorical`. Suggestions and recommendations are rows; the model also learns from points
        of your own that are not.

        Args:
            rows: a list of dicts with the same names, or a table with `to_dict("records")`.
            columns: those that describe a candidate; None means all. `space.row(trial.params)`
                finds the row of a trial again.
            log: columns on a logarithmic scale.
            repeat: whether a row may be tried again. If values are exact, it is not while another
                row is left. If False, each row is tried at most once, and an ask after the last row
                is an error.

        Raises:
            ValueError: if there are fewer than two rows, two are the same or too close to be told
                apart, one lacks a value, or a column is the same in all of them.
            TypeError: if a value is not a number, bool or text.

        Examples:
            >>> shelf = Space.of_rows([{"pKa": 4.8, "ring": True}, {"pKa": 9.1, "ring": False}])
            >>> shelf.decode([0.9, 0.1, 0.6])
            {'pKa': 9.1, 'ring': False}
        """
        parameters, shelf = read_rows(rows, columns, log, repeat)
        return cls(parameters)._with(shelf)

    def _with(self, shelf: Shelf) -> Space:
        """On a shelf whose rows can be told apart."""
        self.shelf = shelf
        self._places.check_apart()
        return self

    @property
    def table(self) -> Reals[np.ndarray, "N D"] | None:
        """The points of the shelf's rows; None if the space is not a shelf."""
        return None if self.shelf is None else self._places.table

    @cached_property
    def _places(self) -> Places:
        assert self.shelf is not None
        rows: tuple[Mapping[str, Any], ...] = self.shelf.rows
        entries = [[u for n, p in self.items() for u in p._encode(row[n])] for row in rows]
        return Places(np.array(entries))

    def row(self, params: Mapping[str, object]) -> int | None:
        """The number of the shelf's row with these values.

        Args:
            params: the parameters of a trial or of an answer.

        Returns:
            Its index in the rows that `of_rows` was given; None if there is no such row.
        """
        if self.shelf is None:
            raise ValueError("only a space of rows has rows: see Space.of_rows")
        return self._places.at(self.encode(params, anywhere=True))

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._parameters)

    @property
    def contexts(self) -> tuple[str, ...]:
        """The names of the contexts, which are given and not chosen."""
        return tuple(name for name, p in self.items() if isinstance(p, Context))

    @property
    def noun(self) -> str:
        """What its points are called."""
        return "point" if self.shelf is None else "row"

    @property
    def targets(self) -> dict[str, Value]:
        """The targets of the fidelities, by name."""
        found: dict[str, Any] = dict(self.items())
        return {name: p.target for name, p in found.items() if isinstance(p, Fidelity)}

    def check_look(self, given: object) -> dict[str, Value]:
        """A clean copy of the fidelities of a look: a legal value for each, or an error.

        Raises:
            ValueError: if a name is missing or unknown, or a value is not accepted.
            TypeError: if it is not a mapping, or a value has a wrong type.
        """
        return check_look(self, given)

    @cached_property
    def prices(self) -> tuple[Price, ...]:
        """What looks cost for each fidelity, unless costs are told."""
        names = list(self.targets)
        columns = self.columns_of(self.targets)
        return tuple(Price.of(self[name], c) for name, c in zip(names, columns, strict=True))

    def relative_cost(self, params: Mapping[str, object]) -> float:
        """What a look costs relative to one at the target, unless costs are told."""
        x = self.encode(params, anywhere=True)[None]
        return float(np.exp(sum(price.log_cost(x)[0][0] for price in self.prices)))

    def check_context(self, given: object) -> dict[str, Value]:
        """A clean copy of a context: a legal value for each `Context`, or an error.

        Raises:
            ValueError: if a name is missing or unknown, or a value is not accepted.
            TypeError: if it is not a mapping, or a value has a wrong type.
        """
        return check_context(self, given)

    def columns_of(self, values: Mapping[str, Any]) -> dict[int, float]:
        """What the columns of some parameters hold for legal values."""
        found, start = dict[int, float](), 0
        for name, p in self.items():
            if name in values:
                found |= dict(enumerate(p._encode(values[name]), start))
            start += width(p)
        return found

    @cached_property
    def layout(self) -> Layout:
        """The columns of the unit cube for the parameters."""
        return layout_of(self._parameters, self.conditions)

    def check(self, params: Mapping[str, object], *, anywhere: bool = False) -> dict[str, Value]:
        """A clean copy with plain Python values in the space's order, or an error.

        Args:
            params: a value for each active parameter.
            anywhere: whether numbers may be between levels, or outside their range by up to three
                times its width, as what was really run may be.

        Raises:
            ValueError: if a name is missing, unknown or inactive, or a value is not accepted.
            TypeError: if a value has a wrong type.
        """
        if not isinstance(params, Mapping):
            raise TypeError(f"params must be a mapping of names to values, not {params!r}")
        lower = {name.lower(): name for name in self}
        problems = []
        for name in params:
            if name not in self:
                close = difflib.get_close_matches(str(name).lower(), lower, n=1)
                hint = f" (did you mean {lower[close[0]]!r}?)" if close else ""
                problems.append(f"unknown {name!r}{hint}")
        clean = dict[str, Value]()
        for name in self.conditions.order:
            if self.conditions.holds(name, clean) or name not in self.conditions.when:
                if name in params:
                    p, given = self[name], params[name]
                    clean[name] = accept(p, name, given) if anywhere else p._check(name, given)
                else:
                    problems.append(f"missing {name!r}{self._why(name)}")
            elif name in params and not problems:
                problems.append(f"inactive {name!r}{self._why(name)}")
        if problems:
            raise ValueError(
                f"params do not fit the space: {', '.join(problems)}. "
                f"The space has {', '.join(map(repr, self))}"
            )
        return {name: clean[name] for name in self if name in clean}

    def _why(self, name: str) -> str:
        """When a parameter that is missing or inactive is there."""
        conditional = name in self.conditions.when
        return f" (it is there only when {self.conditions.reason(name)})" if conditional else ""

    def encode(self, params: Mapping[str, object], *, anywhere: bool = False) -> np.ndarray:
        """The point, (D,), of these values.

        It is one of the cube's unless values may be `anywhere`, as in `check`.
        """
        values: dict[str, Any] = self.check(params, anywhere=anywhere)
        x, begin = self.layout.asleep.copy(), 0
        for name, p in self.items():
            end = begin + width(p)
            if name in values:
                own = values[name]
                x[begin:end] = place(p, name, own) if anywhere else p._encode(own)
            begin = end
        return x

    def place(self, params: Mapping[str, object]) -> np.ndarray:
        """The point, (D,), of values from another space that shares some parameters with this one.

        Names that are not in this space are ignored. What is missing, or is a choice that this
        space does not have, is placed as an inactive parameter: equally near to all values. A
        missing fidelity is at its target.

        Raises:
            ValueError: if a number is too far outside its range.
            TypeError: if a value is not a number.
        """
        x, begin, starts = self.layout.asleep.copy(), 0, dict[str, int]()
        for name, p in self.items():
            starts[name], begin = begin, begin + width(p)
        known: dict[str, Any] = {}
        params = {**self.targets, **params}
        for name in self.conditions.order:
            p, there = self[name], name not in self.conditions.when
            if name not in params or not (there or self.conditions.holds(name, known)):
                continue
            try:
                known[name] = accept(p, name, params[name])
            except ValueError:
                if isinstance(p, Categorical):
                    continue
                raise
            start = starts[name]
            x[start : start + width(p)] = place(p, name, known[name])
        return x

    def fits(self, params: Mapping[str, object]) -> bool:
        """Whether the values are legal, so that they could be suggested.

        Args:
            params: a value for each active parameter.

        Returns:
            True if each value is legal; limits are not looked at (see `allows`).
        """
        try:
            self.check(params)
        except (TypeError, ValueError):
            return False
        return True

    def allows(self, params: Mapping[str, object]) -> bool:
        """Whether values are within the limits of `where`, up to rounding."""
        values = self.check(params)
        there = self.shelf is None or self.row(values) is not None
        return there and self._rounding.met(values) and self.limits.allows(values)

    @cached_property
    def rows(self) -> Rows:
        """The linear limits on the cube."""
        return Rows.of(self.limits.linear, self)

    @cached_property
    def _rounding(self) -> Rounding:
        return Rounding(self.limits.linear, self)

    def decode(self, x: np.ndarray | Sequence[float]) -> dict[str, Value]:
        """The legal values of the active parameters that are nearest to a point of the cube.

        If the point is within the linear limits, so are the values, even after rounding.
        """
        point, columns = np.asarray(x, dtype=float), self.layout.dimensions
        if point.shape != (columns,) or np.isnan(point).any():
            raise ValueError(f"x must be {columns} numbers, one per column of the cube, not {x!r}")
        if self.shelf is not None:
            return dict(self.shelf.rows[self._places.nearest(point)])
        entries = iter(point.tolist())
        values = {n: p._decode([next(entries) for _ in range(width(p))]) for n, p in self.items()}
        if self.conditions:
            values = self.conditions.active(values)
        return self._rounding.restored(values) if self.limits.linear else values

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs to build an equal space, ready for `json.dumps`.

        Raises:
            TypeError: if `where` has a function, which no file can hold.
        """
        where = {"where": self.limits.to_json()} if self.limits else {}
        shelf = {} if self.shelf is None else {"shelf": self.shelf.to_json(self.names)}
        parameters = [{"name": name} | parameter_to_json(p) for name, p in self.items()]
        return {"parameters": parameters} | where | shelf

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Space:
        """The space that `to_json` described."""
        parameters: dict[str, Parameter] = {}
        try:
            for entry in data["parameters"]:
                fields = dict(entry)
                name, kind = fields.pop("name"), KINDS[fields.pop("kind")]
                parameters[name] = kind(**fields)
            space = cls(parameters, list(data.get("where", ())))
            if space.to_json()["parameters"] != list(data["parameters"]):
                raise ValueError("a field is missing, or a name appears twice")
            if "shelf" in data:
                shelf = Shelf.from_json(data["shelf"])
                rows = tuple(space.check(row) for row in shelf.rows)
                space = space._with(replace(shelf, rows=rows))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a space that optpair saved, or damaged: {error!r}") from error
        return space

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        parts = ((list(s.items()), s.limits, s.shelf) for s in (self, other))
        return next(parts) == next(parts)

    def __repr__(self) -> str:
        if self.shelf is not None:
            return f"<Space of {len(self.shelf.rows)} rows: {', '.join(self)}>"
        where = f", where={self.limits!r}" if self.limits else ""
        return f"Space({self._parameters!r}{where})"
