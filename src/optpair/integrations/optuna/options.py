"""Options of the sampler: what may be given, and what to say where it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from optpair.integrations.optuna.space import SearchSpace
from optpair.problem.limits import Limits, Where


def check_limits(where: Where, given: SearchSpace | None) -> Limits:
    """Those of the space, or those that were given beside it."""
    limits = Limits.parse(where)
    if given is None or not given.limits:
        return limits
    if limits:
        raise ValueError("where is given twice: search_space has limits of its own; leave one out")
    return given.limits


def check_names(given: object) -> frozenset[str]:
    """The names of parameters; one alone would be taken for its letters."""
    if isinstance(given, str) or not isinstance(given, Collection):
        raise TypeError(f"ordinals must be a list of names, like ['batch'], not {given!r}")
    return frozenset(given)


def check_guesses(
    guess: object, sure: object, known: Mapping[str, BaseDistribution] | None
) -> dict[str, tuple[Any, float | None]]:
    """A value, and how sure it is, of each parameter of which something is believed."""
    for label, given in (("guess", guess), ("sure", sure)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{label} must be a dict by the names of parameters, not {given!r:.80}")
    values, chances = dict(guess or {}), dict(sure or {})  # type: ignore[call-overload]
    for name in chances:
        if name not in values:
            raise ValueError(f"sure has {name!r}, of which there is no guess")
    for name in values:
        if known is not None and name not in known:
            raise ValueError(
                f"guess has {name!r}, which search_space has not: it has {', '.join(known)}"
            )
    return {name: (value, chances.get(name)) for name, value in values.items()}


def check_function(given: object) -> Callable[[FrozenTrial], Sequence[float]] | None:
    """What `constraints_func` may be."""
    if given is not None and not callable(given):
        raise TypeError(
            "constraints_func must be a function of a trial that returns a list of numbers, not "
            f"{given!r:.80}"
        )
    return given
