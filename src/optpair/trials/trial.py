"""Trials: one evaluation each, its parameters and what came of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, NoReturn

from optpair.trials.numbers import rounded

State = Literal["pending", "told", "failed"]


class Params(dict[str, Any]):
    """A dict that cannot be changed: what a history was told stays what it was.

    >>> Params(x=1.0) | {"x": 2.0}
    {'x': 2.0}
    """

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("a trial's params are read-only; change a copy: dict(trial.params)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Params], tuple[dict[str, Any]]]:
        return Params, (dict(self),)


class Measurement(NamedTuple):
    """The value of an outcome, and the variance of its noise where that is known.

    Where an outcome was measured several times in one trial, `replicates` has every value, `value`
    is their mean, and `noise_var` is the variance of each of them.
    """

    value: float
    noise_var: float | None = None
    replicates: tuple[float, ...] = ()

    @property
    def values(self) -> tuple[float, ...]:
        """Every value that was measured."""
        return self.replicates or (self.value,)

    def to_json(self) -> dict[str, Any]:
        """A JSON document, without replicates where there are none."""
        listed = {"replicates": list(self.replicates)} if self.replicates else {}
        return {"value": self.value, "noise_var": self.noise_var} | listed


class Look(NamedTuple):
    """What was seen of a trial at a fidelity, before it was looked at more closely."""

    at: Mapping[str, Any]
    """The fidelities, by name."""
    outcomes: Mapping[str, Measurement]
    cost: float | None = None
    """What it cost beyond the look before it."""

    def to_json(self) -> dict[str, Any]:
        """A JSON document."""
        return {"at": dict(self.at), "outcomes": _to_json(self.outcomes), "cost": self.cost}


@dataclass(frozen=True)
class Trial:
    """One evaluation: its parameters, which are read-only, and what came of it."""

    id: int
    params: Mapping[str, Any]
    """As they were asked for, or told by the user."""
    state: State = "pending"
    outcomes: Mapping[str, Measurement] = field(default_factory=dict)
    told_params: Mapping[str, Any] | None = None
    """What was run instead of `params`, where that was told."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What the user wants to remember; the model does not read it."""
    reason: str | None = None
    """Why it failed."""
    cost: float | None = None
    """What it cost, or what its last look did beyond those before."""
    looks: tuple[Look, ...] = ()
    """Earlier looks at lower fidelities, in the order of these; `outcomes` are of the last one."""
    several: bool = field(default=False, repr=False, compare=False)
    """Whether its search has several outcomes: then the only one that was measured has a name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcomes", MappingProxyType(dict(self.outcomes)))
        object.__setattr__(self, "notes", MappingProxyType(dict(self.notes)))

    @property
    def actual(self) -> Mapping[str, Any]:
        """What was really run: `params`, unless something else was told."""
        return self.params if self.told_params is None else self.told_params

    @property
    def seen(self) -> tuple[Look, ...]:
        """All looks, the last included, whose fidelities are among the parameters."""
        return (*self.looks, Look({}, self.outcomes, self.cost))

    @property
    def paid(self) -> list[float]:
        """What it had cost in all at each look, the last included; NaN where that is not known."""
        costs = [math.nan if look.cost is None else look.cost for look in self.seen]
        return list(itertools.accumulate(costs))

    @property
    def spent(self) -> float | None:
        """What all looks have cost together, where that was told of each."""
        total = self.paid[-1]
        return None if math.isnan(total) else total

    @property
    def value(self) -> float | None:
        """The value of the only outcome; None before it is told, or if the search has several."""
        return self._only.value if self._only else None

    @property
    def noise_var(self) -> float | None:
        """The known noise variance of the only outcome; None if the search has several."""
        return self._only.noise_var if self._only else None

    @property
    def _only(self) -> Measurement | None:
        alone = len(self.outcomes) == 1 and not self.several
        return next(iter(self.outcomes.values())) if alone else None

    def to_json(self, *, legal: bool) -> dict[str, Any]:
        """A JSON document; `actual` also says that a point need not be legal."""
        found: dict[str, Any] = {"id": self.id, "params": dict(self.params), "state": self.state}
        found["outcomes"] = _to_json(self.outcomes)
        if self.told_params is not None or not legal:
            found["actual"] = dict(self.actual)
        if self.notes:
            found["notes"] = dict(self.notes)
        if self.reason is not None:
            found["reason"] = self.reason
        if self.cost is not None:
            found["cost"] = self.cost
        if self.looks:
            found["looks"] = [look.to_json() for look in self.looks]
        return found

    def __repr__(self) -> str:
        told = rounded({name: found.value for name, found in self.outcomes.items()})
        came = f"value={next(iter(told.values()))}" if self._only else f"outcomes={told}"
        came = f", {came}" if told else ""
        return f"Trial(id={self.id}, params={rounded(self.params)}, state={self.state!r}{came})"

    def __hash__(self) -> int:
        return hash(self.id)

    def __reduce__(self) -> tuple[type[Trial], tuple[Any, ...]]:
        outcomes, notes = dict(self.outcomes), dict(self.notes)
        told = (self.told_params, notes, self.reason, self.cost, self.looks, self.several)
        return Trial, (self.id, self.params, self.state, outcomes, *told)


def _to_json(outcomes: Mapping[str, Measurement]) -> dict[str, Any]:
    return {name: found.to_json() for name, found in outcomes.items()}


def outcomes_from_json(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values and noise variances by name."""
    values = {name: own.get("replicates") or own["value"] for name, own in document.items()}
    return values, {name: own["noise_var"] for name, own in document.items()}
