"""Notes and reasons: text that is kept with a trial, and that no model reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from optpair.problem.problem import Problem

TRIAL, STATE, FAILED, REASON, NOISE_VAR = "trial", "state", "failed", "reason", "noise_var"
"""Columns of a table of trials, beside parameters, outcomes and notes."""


def column(name: str, problem: Problem) -> str:
    """A column's name, with an underscore where a parameter is called so."""
    while name in problem.space:
        name += "_"
    return name


def noise_column(outcome: str, problem: Problem) -> str:
    """The column of an outcome's noise variance."""
    only = len(problem.outcomes) == 1
    return column(NOISE_VAR if only else f"{outcome} {NOISE_VAR}", problem)


def taken_names(problem: Problem) -> set[str]:
    """The names of columns that a note cannot have."""
    noises = {noise_column(name, problem) for name in problem.names}
    others = {column(name, problem) for name in (*problem.names, TRIAL, STATE, FAILED)}
    return {*problem.space, *noises, *others}


def check_reason(reason: object, *, failed: bool) -> str | None:
    """Why a trial failed, or None."""
    if reason is None:
        return None
    if not isinstance(reason, str):
        raise TypeError(f"reason must be text, not {reason!r:.80}")
    if not failed:
        raise ValueError("reason says why a trial failed: pass it with failed=True, or use notes")
    return reason


def check_notes(notes: object, problem: Problem) -> dict[str, str]:
    """Notes as text, under names that no other column of a table has."""
    if notes is None:
        return {}
    if not isinstance(notes, Mapping):
        raise TypeError(f"notes must be a dict of text, like {{'by': 'Ann'}}, not {notes!r:.80}")
    taken, found = taken_names(problem), {}
    for name, note in notes.items():
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"the name of a note must be text, not {name!r:.80}")
        if name in taken:
            raise ValueError(f"a note cannot be called {name!r}, which is another column's name")
        if not isinstance(note, str | int | float | np.generic):
            raise TypeError(f"note {name!r} must be text or a number, not {note!r:.80}")
        found[name] = str(note)
    return found
