"""Histories: every trial of a search, in the user's units.

A refused change changes nothing. Each change is one assignment to one dict, so that Ctrl-C, or a
fork in another thread, finds the history as it was before or as it is after, never in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, SupportsFloat

import numpy as np

from optpair.problem.problem import Problem
from optpair.runtime.shapes import Float
from optpair.trials.data import Data
from optpair.trials.looks import fidelities, goes_on, looked_at, revised_look
from optpair.trials.numbers import check_cost, shown
from optpair.trials.records import Record, known_rows
from optpair.trials.told import Told, read_remarks, read_told
from optpair.trials.trial import Look, Params, State, Trial, outcomes_from_json


class Entry(NamedTuple):
    """A trial, and its point of the cube."""

    trial: Trial
    x: Float[np.ndarray, " D"]


class History:
    """Every trial of a problem. A change that is refused leaves it as it was."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.space = problem, problem.space
        self._entries: dict[int, Entry] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Trial]:
        return iter([entry.trial for entry in self._now()])

    def __getitem__(self, trial_id: int) -> Trial:
        return self._entries[trial_id].trial

    def _now(self) -> list[Entry]:
        """What is there now, whatever other threads add meanwhile."""
        return list(self._entries.values())

    @property
    def points(self) -> Mapping[int, Float[np.ndarray, " D"]]:
        """The points of the trials in the cube, by id."""
        return MappingProxyType({entry.trial.id: entry.x for entry in self._now()})

    @property
    def next_id(self) -> int:
        """The id of the next trial."""
        return self._next

    def count(self, state: State) -> int:
        """How many trials are in a state."""
        return sum(trial.state == state for trial in self)

    def begin(self, trial_id: int) -> None:
        """Let the next trial have this id, or a higher one."""
        self._next = max(self._next, trial_id)

    def add(self, params: Mapping[str, Any]) -> Trial:
        """A new pending trial."""
        return self._put(self._new(params))

    def _new(self, params: Mapping[str, Any], *, anywhere: bool = False) -> Entry:
        """An entry with the next id, which is not in the history yet."""
        clean = Params(self.space.check(params, anywhere=anywhere))
        trial = Trial(self._next, clean, several=len(self.problem.outcomes) > 1)
        return Entry(trial, self.space.encode(clean, anywhere=anywhere))

    def _run_as(self, entry: Entry, params: Mapping[str, Any] | None) -> Entry:
        """The entry of a trial for which something else was run; some parameters, or all."""
        if params is None:
            return entry
        if not isinstance(params, Mapping):
            raise TypeError(f"params must be a dict of what was really run, not {shown(params)}")
        actual = Params(self.space.check({**entry.trial.actual, **params}, anywhere=True))
        told = None if actual == entry.trial.params else actual
        x = self.space.encode(actual, anywhere=True)
        return Entry(replace(entry.trial, told_params=told), x)

    def _put(self, entry: Entry) -> Trial:
        """Let an entry take its place. No id is used twice, whatever comes in between."""
        self._next = max(self._next, entry.trial.id + 1)
        self._entries[entry.trial.id] = entry
        return entry.trial

    def _read(
        self, value: object, noise_var: object, failed: object, notes: object, reason: object
    ) -> dict[str, Any]:
        """What is changed in a trial, checked before anything is changed."""
        found = read_told(self.problem, value, noise_var, failed)
        return found | read_remarks(self.problem, notes, reason, failed)

    def tell(
        self,
        trial: Trial | int | Mapping[str, Any],
        value: Told = None,
        *,
        noise_var: Told = None,
        failed: bool = False,
        params: Mapping[str, Any] | None = None,
        notes: Mapping[str, object] | None = None,
        reason: str | None = None,
        at: Mapping[str, Any] | None = None,
        cost: SupportsFloat | None = None,
    ) -> Trial:
        """Record a value or a failure; parameters instead of a trial add the user's own point.

        Parameters of a pending trial mean that trial, the first where there are several. `params`
        are what was really run for a trial, and may be anywhere; `at` are the fidelities of a look
        at it, one of many.
        """
        outcome = self._read(value, noise_var, failed, notes, reason)
        outcome["cost"] = check_cost(cost)
        if isinstance(trial, Mapping):
            if params is not None:
                raise TypeError("params goes with a trial that was asked for: tell one dict, not 2")
            if at is not None:
                raise TypeError(
                    "at goes with a trial that was asked for: a point of your own has its "
                    "fidelities among its parameters"
                )
            own = self._own(trial)
            entry = self._pending_at(own.trial.params) or own
        elif at is None and not goes_on(self.space, self.known(trial)):
            entry = self._run_as(self._entries[self.pending(trial).id], params)
        else:
            if params is not None:
                raise TypeError("params and at cannot be given together: say at, of this look")
            entry = self._looked_at(trial, at, failed=bool(failed))
            outcome["notes"] = {**entry.trial.notes, **outcome["notes"]}
        return self._put(entry._replace(trial=replace(entry.trial, **outcome)))

    def _looked_at(
        self, trial: Trial | int, at: Mapping[str, Any] | None, *, failed: bool
    ) -> Entry:
        """The entry of a trial for its next look; what was seen before is among its looks."""
        known = self.known(trial)
        clean = fidelities(self.space, known.params) if at is None else self.space.check_look(at)
        if failed and at is not None:
            raise ValueError("a look that failed says nothing: tell(trial, failed=True) ends it")
        if known.state == "failed":
            self.pending(trial)
        entry = self._entries[known.id]
        if known.state == "told":
            entry = entry._replace(trial=looked_at(self.space, known, clean))
        return entry if failed else self._run_as(entry, clean)

    def _own(self, params: Mapping[str, Any]) -> Entry:
        """The user's own point. It must be legal: otherwise it may be a typing mistake."""
        try:
            return self._new(params)
        except ValueError as error:
            try:
                self._new(params, anywhere=True)
            except (TypeError, ValueError):
                raise error from None
            raise ValueError(
                f"{error}; if it was really run so, tell_many([{{…}}]) takes it as data"
            ) from None

    def tell_all(self, records: Sequence[Record], *, again: bool = False) -> list[Trial | None]:
        """Record all rows of a table, or none; None for rows that were known already.

        `again` says that the rows may have been read before; otherwise only those with a trial's
        number can be known.
        """
        work = History(self.problem)
        work._entries, work._next = dict(self._entries), self._next
        known = known_rows(self.problem, self, records) if again else [None] * len(records)
        found = []
        for record, same in zip(records, known, strict=True):
            try:
                found.append(None if same is not None else work._record(record))
            except (TypeError, ValueError) as error:
                raise type(error)(f"{record.where}: {error}; nothing was changed") from error
        self._next = work._next
        self._entries = work._entries
        return found

    def _record(self, record: Record) -> Trial | None:
        """Record one row: of a trial that is out, of the user's own point, or known already."""
        told: dict[str, Any] = {"noise_var": record.noise_var, "failed": record.failed}
        known = None if record.trial is None else self._entries.get(record.trial)
        if known is not None and known.trial.state == "pending":
            told |= {"params": record.params, "notes": record.notes, "reason": record.reason}
            return self.tell(known.trial, record.value, **told)
        outcome = read_told(self.problem, record.value, **told)
        if known is not None:
            actual = self.space.check(record.params, anywhere=True)
            if replace(known.trial, **outcome) == known.trial and actual == known.trial.actual:
                return None
            raise ValueError(
                f"trial {record.trial} was already told otherwise ({_came(known.trial)}, "
                f"{dict(known.trial.actual)}); revise({record.trial}, value) corrects it; if the "
                "rows are of another search, say trial=None"
            )
        outcome |= read_remarks(self.problem, record.notes, record.reason, record.failed)
        entry = self._pending_at(record.params, anywhere=True)
        entry = entry or self._new(record.params, anywhere=True)
        return self._put(entry._replace(trial=replace(entry.trial, **outcome)))

    def _pending_at(self, params: Mapping[str, Any], *, anywhere: bool = False) -> Entry | None:
        """The first pending trial with these parameters."""
        x = self.space.encode(params, anywhere=anywhere)
        out = (entry for entry in self._now() if entry.trial.state == "pending")
        return next((entry for entry in out if np.array_equal(entry.x, x)), None)

    def revise(
        self,
        trial: Trial | int,
        value: Told = None,
        *,
        noise_var: Told = None,
        failed: bool = False,
        params: Mapping[str, Any] | None = None,
        notes: Mapping[str, object] | None = None,
        reason: str | None = None,
        at: Mapping[str, Any] | None = None,
        cost: SupportsFloat | None = None,
    ) -> Trial:
        """Record another value or failure of a trial in place of what was told before.

        What was really run, costs and notes stay as they are where none are given; notes are added.
        `at` says which look is meant, by default the last.
        """
        outcome = self._read(value, noise_var, failed, notes, reason)
        known, priced = self.known(trial), check_cost(cost)
        if known.state == "pending":
            raise ValueError(f"trial {known.id} is pending: tell it, there is nothing to revise")
        outcome["notes"] = {**known.notes, **outcome["notes"]}
        look = None if at is None else self.space.check_look(at)
        if look is not None and look != fidelities(self.space, known.actual):
            revised = revised_look(known, look, outcome, priced)
            return self._put(self._entries[known.id]._replace(trial=revised))
        outcome["cost"] = known.cost if priced is None else priced
        entry = self._run_as(self._entries[known.id], params)
        return self._put(entry._replace(trial=replace(entry.trial, **outcome)))

    def put_back(self, trial: Trial) -> Trial:
        """Let a trial that is known be as it is here, whatever came of it meanwhile."""
        return self._put(Entry(trial, self.space.encode(trial.actual, anywhere=True)))

    def cancel(self, trial: Trial | int) -> None:
        """Forget a pending trial."""
        known = self.known(trial)
        if known.state != "pending":
            raise ValueError(
                f"trial {known.id} was already told ({_came(known)}): only pending trials can be "
                "cancelled; to correct what was told, revise(trial, value)"
            )
        del self._entries[known.id]

    def withdraw(self, trial_id: int) -> None:
        """Forget a trial, and those after it, as if they had never been, ids and all."""
        for newer in [known for known in self._entries if known >= trial_id]:
            del self._entries[newer]
        self._next = trial_id

    def pending(self, trial: Trial | int) -> Trial:
        """The pending trial that is meant, or an error that says why there is none."""
        known = self.known(trial)
        if known.state != "pending":
            raise ValueError(
                f"trial {known.id} was already told ({_came(known)}); to correct that, "
                "revise(trial, value); to add another evaluation of the same point, tell its "
                "parameters: tell(trial.params, value)"
            )
        return known

    def known(self, trial: Trial | int) -> Trial:
        """The trial that is meant, as it is now, or an error that says why there is none."""
        if isinstance(trial, Mapping):
            raise TypeError(
                "trial must be what ask() returned, or its id: parameters do not say which is meant"
            )
        if not isinstance(trial, Trial | int | np.integer) or isinstance(trial, bool):
            raise TypeError(
                "trial must be what ask() returned, its id, or a dict of parameters, not "
                + shown(trial)
            )
        trial_id = trial.id if isinstance(trial, Trial) else int(trial)
        entry = self._entries.get(trial_id)
        if entry is None:
            raise ValueError(
                f"trial {shown(trial_id)} is unknown here: never asked, or cancelled; to add a "
                "value all the same, tell its parameters: tell(trial.params, value)"
            )
        known = entry.trial
        if isinstance(trial, Trial) and trial.params != known.params:
            raise ValueError(
                f"trial {trial_id} with {dict(trial.params)} is of another optimizer: here it is "
                f"{dict(known.params)}; to add its value, tell its parameters: "
                "tell(trial.params, value)"
            )
        return known

    def data(self) -> Data:
        """The arrays that the engine sees, in the order of the trials' ids."""
        entries = self._now()
        points = {entry.trial.id: entry.x for entry in entries}
        return Data.of(self.problem, [entry.trial for entry in entries], points)

    def spent(self) -> float:
        """What all trials have cost: as was told or, where not, in looks at the target."""
        seen = [trial for trial in self if trial.state != "pending"]
        return math.fsum(
            self.space.relative_cost(trial.actual) if trial.spent is None else trial.spent
            for trial in seen
        )

    def measured(self) -> dict[str, int]:
        """How many values there are of each outcome."""
        told = [own.outcomes for trial in self for own in trial.seen]
        return {
            name: sum(len(found[name].values) for found in told if name in found)
            for name in self.problem.outcomes
        }

    def to_json(self) -> dict[str, Any]:
        """A JSON document that `from_json` turns back into the same history."""
        trials = [trial.to_json(legal=self.space.fits(trial.params)) for trial in self]
        return {"problem": self.problem.to_json(), "next": self._next, "trials": trials}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> History:
        """The history that a document holds; ValueError, KeyError or TypeError where it is none."""
        history = cls(Problem.from_json(document["problem"]))
        for row in document["trials"]:
            history._restore(row)
        history._next = history._check_id(document["next"])
        return history

    def _restore(self, row: Mapping[str, Any]) -> None:
        self._next = self._check_id(row["id"])
        more: dict[str, Any] = {name: row.get(name) for name in ("notes", "reason", "cost")}
        more["params"] = row.get("actual")
        anywhere = more["params"] is not None and row["state"] != "pending"
        entry, outcomes = self._new(row["params"], anywhere=anywhere), row["outcomes"]
        looks = tuple(self._restored_look(look) for look in row.get("looks", ()))
        trial = self._put(entry._replace(trial=replace(entry.trial, looks=looks)))
        if row["state"] == "told":
            values, noises = outcomes_from_json(outcomes)
            self.tell(trial, values, noise_var=noises, **more)
        elif outcomes or row["state"] not in ("pending", "failed"):
            raise ValueError(f"trial {trial.id} has state {row['state']!r} and values {outcomes!r}")
        elif row["state"] == "failed":
            self.tell(trial, failed=True, **more)

    def _restored_look(self, row: Mapping[str, Any]) -> Look:
        values, noises = outcomes_from_json(row["outcomes"])
        outcomes = read_told(self.problem, values, noises, False)["outcomes"]
        return Look(Params(self.space.check_look(row["at"])), outcomes, check_cost(row["cost"]))

    def _check_id(self, trial_id: object) -> int:
        if isinstance(trial_id, bool) or not isinstance(trial_id, int) or trial_id < self._next:
            raise ValueError(f"trial ids must be ints that increase, {trial_id!r} does not")
        return trial_id


def _came(trial: Trial) -> str:
    if trial.state == "failed":
        return "failed"
    told = {name: found.value for name, found in trial.outcomes.items()}
    return f"values {told}" if trial.value is None else f"value {trial.value}"
