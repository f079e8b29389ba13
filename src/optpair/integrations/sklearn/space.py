"""Spaces as scikit-learn's users write them: parameters, lists, arrays, SciPy's distributions."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optpair.integrations.sklearn.resources import Resource
from optpair.problem.space import Categorical, Context, Float, Int, Ordinal, Parameter, Space
from optpair.results.best import Recommendation
from optpair.results.front import Front
from optpair.trials.trial import Trial

Choices = Parameter | Sequence[Any]

UNIFORM, LOG_UNIFORM, WHOLE = {"uniform"}, {"loguniform", "reciprocal"}, {"randint"}
"""SciPy's names of the distributions that say no more than a range and a scale."""


@dataclass(frozen=True)
class _Entry:
    """A parameter of the estimator as the optimizer has it: in some of the dicts, by a key."""

    name: str
    key: str
    grids: tuple[int, ...]
    given: Any
    """A parameter, or the objects to choose from."""

    @property
    def tuned(self) -> bool:
        """Whether there is anything to choose."""
        return not isinstance(self.given, list) or len(self.given) > 1

    def parameter(self, when: Mapping[str, Any] | None) -> Parameter:
        """What the optimizer is given."""
        if not isinstance(self.given, list):
            given = getattr(self.given, "when", None)
            return replace(self.given, when=when) if when or given else self.given
        found = _ordered(self.given) or Categorical(range(len(self.given)))
        return replace(found, when=when) if when else found

    def places(self, values: Sequence[Any], child: str) -> list[Any]:
        """Values of a condition of another parameter, as the optimizer has them."""
        if not isinstance(self.given, list):
            return list(values)
        known = [i for i, own in enumerate(self.given) if any(_is(own, v) for v in values)]
        strange = [v for v in values if not any(_is(own, v) for own in self.given)]
        if strange or not known:
            raise ValueError(
                f"space: when of {child!r}: {self.name!r} must be one of {self.given!r}, not "
                f"{(strange or list(values))[0]!r}"
            )
        return [self.given[i] for i in known] if _ordered(self.given) else known


class NumberedSpace:
    """The user's space, with objects of lists replaced by their places.

    A list of dicts is a choice between them: one more parameter says which, and the others are
    there only with the dicts that have them. What several dicts have alike is one parameter.
    """

    def __init__(
        self,
        given: Space | Mapping[str, Choices] | Sequence[Mapping[str, Choices]],
        resource: Resource | None = None,
    ) -> None:
        grids = _grids(given)
        if resource is not None:
            _check_resource(resource, given, grids)
            if not resource.is_samples:
                grids = [{**grid, resource.name: resource.fidelity} for grid in grids]
        self._entries = _entries(grids)
        self._grid = _free("grid", {entry.name for entry in self._entries})
        tuned: dict[str, Parameter] = {}
        if len(grids) > 1:
            tuned[self._grid] = Categorical(range(len(grids)))
        for entry in self._entries:
            if entry.tuned:
                tuned[entry.key] = entry.parameter(self._when(entry, len(grids)))
        if not tuned and not isinstance(given, Space):
            raise ValueError(
                f"space has nothing to tune: {given!r:.80} has one value for each parameter; give "
                "a Float, Int or a list of several values, or set these values and fit the "
                "estimator itself"
            )
        if resource is not None:
            tuned[resource.name] = resource.fidelity
            self.space = Space(tuned, given.limits if isinstance(given, Space) else ())
        else:
            self.space = copy.deepcopy(given) if isinstance(given, Space) else Space(tuned)
        self._grids = len(grids)

    def _when(self, entry: _Entry, grids: int) -> dict[str, Any] | None:
        """When a parameter is there: its own conditions, and in which of several dicts."""
        beside = {e.name: e for e in self._entries if entry.grids[0] in e.grids}
        own: dict[str, Any] = {}
        for parent, values in (getattr(entry.given, "when", None) or {}).items():
            if parent not in beside:
                own[parent] = values  # which Space refuses
                continue
            places = beside[parent].places(values, entry.name)
            if beside[parent].tuned:
                own[beside[parent].key] = places
        if len(entry.grids) < grids:
            own[self._grid] = list(entry.grids)
        return own or None

    def named(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What the estimator is given."""
        grid = params.get(self._grid, 0) if self._grids > 1 else 0
        own = [entry for entry in self._entries if grid in entry.grids]
        return {e.name: self._own(e, params) for e in own if e.key in params or not e.tuned}

    def _own(self, entry: _Entry, params: Mapping[str, Any]) -> Any:
        objects = entry.given
        if not isinstance(objects, list):
            return params[entry.key]
        if not entry.tuned:
            return objects[0]
        if isinstance(self.space[entry.key], Ordinal):
            return next(each for each in objects if each == params[entry.key])
        return objects[params[entry.key]]

    def served(self, found: Recommendation | Front) -> Any:
        """The same, with the objects themselves."""
        if isinstance(found, Front):
            return replace(
                found,
                points=tuple(replace(p, params=self.named(p.params)) for p in found.points),
                observed=tuple(self._trial(trial) for trial in found.observed),
            )
        return replace(found, params=self.named(found.params), observed=self._trial(found.observed))

    @property
    def objects(self) -> list[Any]:
        """All objects of lists."""
        return [each for e in self._entries if isinstance(e.given, list) for each in e.given]

    @property
    def labels(self) -> dict[str, list[str]]:
        """The names of the objects behind the places, as a report shows them."""
        listed = [e for e in self._entries if isinstance(e.given, list)]
        placed = [e for e in listed if isinstance(self.space.get(e.key), Categorical)]
        words = {entry.key: _words(entry.given) for entry in placed}
        if self._grids > 1:
            words[self._grid] = _words([self._said(grid) for grid in range(self._grids)])
        return words

    def _said(self, grid: int) -> str:
        """What a dict gives as it is, and other dicts do not."""
        own = [e for e in self._entries if e.grids == (grid,) and not e.tuned]
        return ", ".join(f"{e.name} = {_words(e.given)[0]}" for e in own) or f"dict {grid}"

    @property
    def single(self) -> dict[str, str]:
        """Words for what is given as it is, with whatever else."""
        fixed = [e for e in self._entries if not e.tuned and len(e.grids) == self._grids]
        return {entry.name: _words(entry.given)[0] for entry in fixed}

    def _trial(self, trial: Trial) -> Trial:
        return replace(trial, params=self.named(trial.params))


def _grids(given: object) -> list[Mapping[str, Choices]]:
    """The dicts to choose between; with one there is no choice."""
    grids: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    for grid in grids:
        if not isinstance(grid, Mapping):
            raise TypeError(
                "space must be a Space, a dict like {'alpha': Float(0, 1)}, or a list of such "
                f"dicts, not {given!r}"
            )
        if len(grids) > 1 and isinstance(grid, Space) and (grid.limits or grid.shelf):
            raise ValueError(
                "space: in a list, a Space with where or of rows has no meaning for the others; "
                "give it alone, with the choice as a parameter and when={…}"
            )
    if not grids:
        raise ValueError("space must have something to tune, not []: give a dict, or several")
    return grids


def _check_resource(
    resource: Resource, given: object, grids: Sequence[Mapping[str, Choices]]
) -> None:
    """Check that the resource is not a parameter, and that nothing else makes a look cheaper."""
    if any(resource.name in grid for grid in grids):
        raise ValueError(
            f"space has {resource.name!r}, which is the resource: leave it out there; "
            "min_resources and max_resources are its range"
        )
    if isinstance(given, Space) and given.shelf is not None:
        raise ValueError(
            f"resource={resource.name!r} and a Space of rows cannot be given together: rows are "
            "all that exists; leave the resource out"
        )


def _entries(grids: Sequence[Mapping[str, Choices]]) -> list[_Entry]:
    """The parameters of all dicts; one that is alike in several is one."""
    found: list[_Entry] = []
    for number, grid in enumerate(grids):
        for name, p in grid.items():
            if isinstance(p, Context):
                raise ValueError(
                    f"{name!r} is a Context, but a search chooses all that an estimator is given; "
                    "make it a Float or Categorical, or ask and tell: Optimizer.ask(context=…)"
                )
            given = _read(name, p)
            same = [i for i, e in enumerate(found) if e.name == name and _alike(e.given, given)]
            if same:
                found[same[0]] = replace(found[same[0]], grids=(*found[same[0]].grids, number))
                continue
            key = _free(name, {entry.key for entry in found}, f" [{number}]")
            found.append(_Entry(name, key, (number,), given))
    return found


def _alike(one: Any, other: Any) -> bool:
    """Whether two choices are the same; conditions belong to their dict."""
    if getattr(one, "when", None) or type(one) is not type(other):
        return False
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # objects that cannot be compared
        return False


def _is(one: Any, other: Any) -> bool:
    """Whether two objects are the same, of one kind: True is not 1."""
    try:
        return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
    except (TypeError, ValueError):  # objects that cannot be compared
        return False


def _free(name: str, taken: Collection[str], mark: str = "_") -> str:
    """A name that is not taken: with a mark where it is."""
    while name in taken:
        name += mark
    return name


def _words(objects: Sequence[Any]) -> list[str]:
    """A line for each object; of those that look alike, each after the first has its place."""
    lines = [each if isinstance(each, str) else " ".join(repr(each).split()) for each in objects]
    return [line if line not in lines[:i] else f"{line} [{i}]" for i, line in enumerate(lines)]


def _read(name: str, given: Any) -> Any:
    """A parameter, or a list of objects to choose from."""
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if isinstance(given, tuple) and len(given) == 2 and _ordered(list(given)):
        low, high = sorted(given)
        raise ValueError(
            f"space: {name!r} is {given!r}: is it a range? Write Float({low!r}, {high!r}), with "
            f"log=True where it spans orders of magnitude, or Int; two choices are a list: "
            f"{list(given)!r}"
        )
    if _is_range_of_others(given):
        log = ", log=True" if "log" in given[2] else ""
        raise ValueError(
            f"space: {name!r} is {given!r}: is it a range? Write Float({given[0]!r}, {given[1]!r}"
            f"{log}), or Int; three choices are a list: {list(given)!r}"
        )
    if isinstance(given, list | tuple | range):
        if not given:
            raise ValueError(f"space: {name!r} must have something to choose from, not []")
        return list(given)
    if hasattr(given, "rvs"):
        return _of_distribution(name, given)
    if not isinstance(given, Parameter):
        raise TypeError(
            f"space: {name!r} must be a list to choose from, a Float, Int, Ordinal or Categorical, "
            f"or a frozen uniform, loguniform or randint of scipy.stats, not {given!r:.80}; what "
            f"has one value only is a list of it: [{given!r:.40}]"
        )
    # A copy, as a space keeps what it has worked out, and `fit` leaves its parameters alone.
    return copy.deepcopy(given)


def _is_range_of_others(given: object) -> bool:
    """Whether it is a tuple like (0.1, 10, "log-uniform"), as other libraries write a range."""
    return (
        isinstance(given, tuple)
        and len(given) == 3
        and isinstance(given[2], str)
        and _ordered(list(given[:2])) is not None
    )


def _ordered(objects: list[Any]) -> Ordinal | None:
    """The numbers in ascending order; None if some are equal, or not all are numbers."""
    try:
        return Ordinal(objects)
    except (TypeError, ValueError):
        return None


def _of_distribution(name: str, given: Any) -> Parameter:
    """The range and scale of a frozen distribution of SciPy, where it says no more than that."""
    kind = getattr(getattr(given, "dist", None), "name", type(given).__name__)
    try:
        low, high = (float(end) for end in given.support())
    except (AttributeError, TypeError, ValueError):
        low, high = np.nan, np.nan
    if kind in UNIFORM:
        return Float(low, high)
    if kind in LOG_UNIFORM:
        return Float(low, high, log=True)
    if kind in WHOLE:
        return Int(int(low), int(high))
    raise ValueError(
        f"space: {name!r} is SciPy's {kind}, which is not understood: uniform, loguniform and "
        "randint are. Give the range and the scale instead: Float(low, high), with log=True where "
        "it spans orders of magnitude, Int(low, high), or a list"
    )
