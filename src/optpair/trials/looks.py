"""Looks: what is seen of one trial, closer and closer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from optpair.problem.space import Space
from optpair.trials.trial import Look, Params, Trial


def fidelities(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """The fidelities among some parameters."""
    return {name: params[name] for name in space.targets}


def goes_on(space: Space, known: Trial) -> bool:
    """Whether a trial was looked at, but not yet as closely as was asked for."""
    if not space.targets or known.state != "told":
        return False
    return _beyond(space, fidelities(space, known.params), known)


def looked_at(space: Space, known: Trial, at: Mapping[str, Any]) -> Trial:
    """A told trial before its next look: what was seen so far is among its looks."""
    last = fidelities(space, known.actual)
    if not _beyond(space, at, known):
        raise ValueError(_out_of_order(last, at, known))
    seen = Look(Params(last), known.outcomes, known.cost)
    return replace(known, looks=(*known.looks, seen))


def _beyond(space: Space, at: Mapping[str, Any], known: Trial) -> bool:
    """Whether fidelities are nearer to the target's end than where a trial was seen last."""
    last = fidelities(space, known.actual)
    return at != last and all(_ahead(space[name], at[name], last[name]) for name in at)


def _ahead(fidelity: Any, here: float, before: float) -> bool:
    """Whether a run comes to a fidelity no sooner than to another: up or, to a low target, down."""
    return here <= before if fidelity.target == fidelity.low else here >= before


def _out_of_order(last: Mapping[str, Any], at: Mapping[str, Any], known: Trial) -> str:
    before = ", ".join(f"{n}={v!r}" for n, v in last.items())
    given = ", ".join(f"{n}={v!r}" for n, v in at.items())
    return (
        f"trial {known.id} was already looked at with {before}, and {given} is not beyond that: "
        "looks at one trial get closer; revise(trial, value, at={…}) corrects one, and a run of "
        f"its own is another point: tell({{**trial.params, **{dict(at)!r}}}, value)"
    )


def revised_look(
    known: Trial, at: Mapping[str, Any], outcome: Mapping[str, Any], cost: float | None
) -> Trial:
    """The trial with another value of an earlier look."""
    if outcome["state"] == "failed":
        raise ValueError("a look that failed says nothing: revise(trial, failed=True)")
    if at not in [look.at for look in known.looks]:
        raise ValueError(f"trial {known.id} has no look at {dict(at)!r}: tell it first")
    looks = tuple(
        look
        if look.at != at
        else Look(look.at, outcome["outcomes"], look.cost if cost is None else cost)
        for look in known.looks
    )
    return replace(known, looks=looks, notes=outcome["notes"])
