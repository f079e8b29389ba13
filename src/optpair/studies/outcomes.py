"""The table [outcomes] of a study file: what is measured in a trial, and what is wanted of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args

from optpair.problem.outcomes import Constraint, Direction, Objective, Outcome, meant
from optpair.studies.document import StudyError, Table, is_name, is_number, is_table

NOISE_VAR = "noise_var"
"""What a result may have beside its outcomes: no outcome can have that name."""

PRICE = "cost"
"""What a result may have beside its outcomes, unless one of them has that name."""

EXAMPLE = 'accuracy = "maximize", or latency = { high = 20.0 }'


def read_outcomes(content: Mapping[str, Any]) -> dict[str, Outcome]:
    """The outcomes by name, in the order of the file, at least one of them an objective.

    Raises:
        StudyError: where one is wrong, with what is accepted.
    """
    if not content:
        raise StudyError(f"[outcomes] is empty: name what a trial gives, like {EXAMPLE}")
    for name in content:
        if not is_name(name) or name == NOISE_VAR or "=" in name:
            raise StudyError(
                f"[outcomes] cannot have an outcome called {name!r}: choose another name"
            )
    found = {name: _outcome(name, own) for name, own in content.items()}
    if not any(isinstance(outcome, Objective) for outcome in found.values()):
        raise StudyError(
            f"[outcomes] has only constraints, {', '.join(found)}, so no point is better than "
            'another: make the one that matters most "minimize" or "maximize"'
        )
    return found


def _outcome(name: str, own: object) -> Outcome:
    label = f"[outcomes] {name}"
    if isinstance(own, str) and own in get_args(Direction):
        return Objective(own)  # type: ignore[arg-type]
    if not is_table(own):
        raise StudyError(
            f'{label} must be "minimize", "maximize", {{ direction = …, bounds = [low, high] }} or '
            f"{{ low = …, high = … }}, not {own!r}{meant(own, get_args(Direction))}"
        )
    table = Table(label, own)
    direction = table.take(
        "direction", "'minimize' or 'maximize'", lambda v: v in get_args(Direction)
    )
    low, high = (table.take(key, "a finite number", is_number) for key in ("low", "high"))
    bounds = table.take("bounds", "[low, high], with inf for no end", _is_bounds)
    guess = table.take("guess", "[low, high], two finite numbers", _is_pair)
    noise, sure = (table.take(key, "a finite number", is_number) for key in ("noise", "sure"))
    table.end()
    limited = low is not None or high is not None
    if (direction is not None) == limited:
        raise StudyError(
            f"{label} must have either direction (an objective), or low or high (a constraint)"
        )
    if limited and not (bounds is None and guess is None and sure is None):
        raise StudyError(f"{label}: bounds, guess and sure are for objectives, not for constraints")
    try:
        if limited:
            return Constraint(low, high, noise)
        ends = None if bounds is None else [v if math.isfinite(v) else None for v in bounds]
        return Objective(direction, noise, ends, guess, sure)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise StudyError(f"{label}: {error}") from error


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value))


def _is_bounds(value: object) -> bool:
    """Two numbers, of which the first may be -inf and the second inf."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    low, high = value
    return (is_number(low) or low == -math.inf) and (is_number(high) or high == math.inf)
