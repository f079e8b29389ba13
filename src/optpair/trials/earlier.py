"""Earlier studies as records: what was tried then, and what came of it, in today's terms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from optpair.problem.problem import Problem
from optpair.runtime.shapes import Float
from optpair.trials.numbers import check_noise_var, check_value


class EarlierRow(NamedTuple):
    """One trial of an earlier study."""

    params: Mapping[str, Any]
    """By the names that the present space knows; some may be missing."""
    values: Mapping[str, float]
    """By the present outcomes' names, in the present direction."""
    noise_var: Mapping[str, float]
    """Where it is known."""


@dataclass(frozen=True)
class EarlierStudy:
    """What an earlier study has to say to a problem."""

    name: str
    rows: tuple[EarlierRow, ...]

    def __repr__(self) -> str:
        return f"EarlierStudy({self.name!r}, {len(self.rows)} rows)"

    def to_json(self) -> dict[str, Any]:
        """A JSON document."""
        rows = [[dict(part) for part in row] for row in self.rows]
        return {"name": self.name, "rows": rows}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], problem: Problem) -> EarlierStudy:
        """The study that a document holds; ValueError, KeyError or TypeError where it is none."""
        rows = [EarlierRow(*(dict(part) for part in row)) for row in document["rows"]]
        if not isinstance(document["name"], str):
            raise TypeError(f"the name of an earlier study must be a text: {document['name']!r}")
        study = cls(document["name"], tuple(rows))
        study.check(problem)
        return study

    def check(self, problem: Problem) -> None:
        """Raise where the study has nothing to say to the problem, or a value is not legal."""
        space, names = problem.space, problem.names
        tuned = [name for name in space if name not in space.contexts]
        if not any(name in row.values for row in self.rows for name in names):
            raise ValueError(
                f"{self.name} has no value of {' or '.join(map(repr, names))}: it needs at least "
                "one told trial"
            )
        if not any(name in row.params for row in self.rows for name in tuned):
            raise ValueError(
                f"{self.name} shares no parameter with the space, which has "
                f"{', '.join(map(repr, space))}; rename its columns, or leave it out"
            )
        for row in self.rows:
            for name, value in row.values.items():
                check_value(value, f"{self.name}: {name}", "leave the row out")
            for known in row.noise_var.values():
                check_noise_var(known)


@dataclass(frozen=True, eq=False)
class Lent:
    """The rows of an earlier study on the present cube, to be maximised."""

    name: str
    X: Float[np.ndarray, "n D"]
    Y: Float[np.ndarray, "n O"]
    """NaN where an outcome was not measured."""
    noise_var: Float[np.ndarray, "n O"]
    """NaN where it is not known."""
    left_out: int = field(default=0)
    """Rows that are too far outside of the present space."""

    @classmethod
    def of(cls, study: EarlierStudy, problem: Problem) -> Lent:
        """Of the rows that have a place on the cube."""
        found: list[tuple[np.ndarray, EarlierRow]] = []
        for row in study.rows:
            try:
                found.append((problem.space.place(row.params), row))
            except (TypeError, ValueError):
                continue
        signs = {name: outcome.sign for name, outcome in problem.outcomes.items()}
        Y = [[s * row.values.get(name, math.nan) for name, s in signs.items()] for _, row in found]
        noises = [[row.noise_var.get(name, math.nan) for name in signs] for _, row in found]
        D, outcomes = problem.space.layout.dimensions, len(signs)
        return cls(
            study.name,
            np.array([x for x, _ in found], dtype=np.float64).reshape(-1, D),
            np.array(Y, dtype=np.float64).reshape(-1, outcomes),
            np.array(noises, dtype=np.float64).reshape(-1, outcomes),
            len(study.rows) - len(found),
        )


def lend(studies: Sequence[EarlierStudy], problem: Problem) -> tuple[Lent, ...]:
    """What all studies have, on the present cube.

    Raises:
        ValueError: if no row of a study is near the present space.
    """
    lent = tuple(Lent.of(study, problem) for study in studies)
    for own in lent:
        if len(own.X) == 0:
            raise ValueError(
                f"every row of {own.name} is far outside of the space, by more than three times "
                "a parameter's range: are its units the same?"
            )
    return lent
