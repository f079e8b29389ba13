"""The table [space] of a study file: parameters one by one, or the rows of a CSV file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    FloatDistribution,
    IntDistribution,
)

from optpair.integrations.optuna.space import Domain, to_distribution, to_parameter
from optpair.problem.conditions import Conditions
from optpair.problem.defaults import WHOLE
from optpair.problem.limits import Limits
from optpair.problem.parameters import (
    Categorical,
    Context,
    Fidelity,
    Float,
    Ordinal,
    Parameter,
)
from optpair.problem.parameters.fidelities import Price
from optpair.problem.parameters.floats import MOST_DIGITS
from optpair.problem.space import Space
from optpair.studies.document import (
    LONGEST,
    StudyError,
    Table,
    is_finite,
    is_name,
    is_number,
    is_positive,
    is_table,
)

TWO = "[low, high]"


class StudySpace(Mapping[str, BaseDistribution]):
    """The parameters of a study in Optuna's words, by name, and what these do not say.

    Args:
        distributions: what Optuna stores of each.
        parameters: those that have more than one value, as the model knows them.
        where: limits on them.
        shelf: the space, where it is one of rows.
        labels: of each row, what the file has in columns that do not describe it.
    """

    def __init__(
        self,
        distributions: Mapping[str, BaseDistribution],
        parameters: Mapping[str, Parameter],
        where: Sequence[str] = (),
        shelf: Space | None = None,
        labels: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._distributions = dict(distributions)
        self.parameters = dict(parameters)
        self.where, self.shelf, self._labels = tuple(where), shelf, tuple(labels)
        self.conditions = Conditions(self.parameters)

    def __getitem__(self, name: str) -> BaseDistribution:
        return self._distributions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._distributions)

    def __len__(self) -> int:
        return len(self._distributions)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The names, each after those that it depends on."""
        alone = [name for name in self if name not in self.conditions.when]
        return (*alone, *(name for name in self.conditions.order if name not in alone))

    @property
    def searched(self) -> Mapping[str, BaseDistribution | Parameter]:
        """What a sampler is to know of it."""
        return self.shelf if self.shelf is not None else {**self, **self.parameters}

    @property
    def contexts(self) -> tuple[str, ...]:
        """The parameters that are given with every trial, and never chosen."""
        return tuple(name for name, p in self.parameters.items() if isinstance(p, Context))

    @property
    def fidelities(self) -> tuple[str, ...]:
        """The parameters that say how closely a trial is looked at."""
        return tuple(self._looks())

    def relative_cost(self, params: Mapping[str, Any]) -> float:
        """What a trial costs relative to one at the target, unless costs are told."""
        prices = [(Price.of(p, 0), p._encode(params[n])) for n, p in self._looks().items()]
        return math.exp(sum(price.log_cost(np.array([x]))[0][0] for price, x in prices))

    @cached_property
    def domain(self) -> Domain:
        """What the model knows of it; its space is an error if nothing can be tried."""
        limits, own = Limits.parse(self.where), self.parameters
        return Domain(self, limits=limits, given=own, shelf=self.shelf)

    def _looks(self) -> dict[str, Any]:
        return {name: p for name, p in self.parameters.items() if isinstance(p, Fidelity)}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that only label a row."""
        return tuple(self._labels[0]) if self._labels else ()

    def labels(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What labels the row with these values; nothing if it is none."""
        if self.shelf is None or not self._labels:
            return {}
        row = self.shelf.row(params)
        return {} if row is None else dict(self._labels[row])


def read_space(content: Mapping[str, Any], where: Sequence[str], folder: Path) -> StudySpace:
    """What [space] says, with the limits of [study]; files are found from a folder.

    Raises:
        StudyError: where something is wrong, with what is accepted.
    """
    if isinstance(content.get("rows"), str):
        from optpair.studies.shelves import read_shelf  # late: few spaces are tables

        if where:
            raise StudyError("[study] where is not for rows: leave out the rows that break it")
        shelf, labels = read_shelf(content, folder)
        stored = {name: to_distribution(name, p) for name, p in shelf.items()}
        return StudySpace(stored, shelf, shelf=shelf, labels=labels)
    names = list(content)
    if not names:
        raise StudyError("[space] needs a parameter, like lr = { float = [1e-5, 1.0], log = true }")
    if not all(map(is_name, names)):
        raise StudyError(f"[space] parameters must have names of 1 to {LONGEST} characters")
    table = Table("[space]", content)
    distributions, parameters = dict[str, BaseDistribution](), dict[str, Parameter]()
    for name in names:
        label, own = f"[space] {name}", table.take(name, "a table", is_table)
        distributions[name], parameter = _parameter(label, own)
        if parameter is not None:
            parameters[name] = parameter
    tuned = [name for name in names if not isinstance(parameters.get(name), Fidelity | Context)]
    if all(distributions[name].single() for name in tuned):
        raise StudyError("[space] has nothing to tune: every parameter has only one value")
    try:
        space = StudySpace(distributions, parameters, where)
    except (TypeError, ValueError) as error:
        raise StudyError(f"[space] {error}") from error
    _check_limits(space)
    return space


def _check_limits(space: StudySpace) -> None:
    """Limits that can be read, and that leave something to try."""
    if not space.where:
        return
    try:
        assert space.domain.space
    except ValueError as error:
        raise StudyError(f"[study] {error}") from error


def _parameter(label: str, content: object) -> tuple[BaseDistribution, Parameter | None]:
    """What Optuna stores of a parameter, and what the model knows of it, if it can."""
    table = Table(label, content)
    distribution, exact = _distribution(label, table)
    guess = table.take("guess", "a value that the parameter can have", _is_value)
    sure = table.take("sure", "a number above 0 and at most 0.99", is_positive)
    when = table.take("when", "a table like { kernel = 'poly' }", is_table)
    role = table.take("role", "'context', of what is given and not chosen", "context".__eq__)
    table.end()
    if sure is not None and guess is None:
        raise StudyError(f"{label}: sure = {sure!r} needs a guess to be sure of")
    said = {"guess": guess, "sure": sure, "when": when}
    more = {key: value for key, value in said.items() if value is not None}
    if role is not None:
        return distribution, _context(label, exact, more)
    if exact is None:
        if more:
            key = next(iter(more))
            raise StudyError(
                f"{label} has one value, or more than the model can tell apart, so {key} has no "
                "effect: leave it out"
            )
        return distribution, None
    try:
        return distribution, replace(exact, **more)
    except (TypeError, ValueError) as error:
        raise StudyError(f"{label}: {error}") from error


def _context(label: str, given: Parameter | None, more: Mapping[str, Any]) -> Parameter:
    """The parameter as one that is given: categories, or a range without steps."""
    if more:
        key = next(iter(more))
        raise StudyError(f"{label} is a context, which is given and not chosen: leave out {key}")
    if isinstance(given, Categorical):
        return Context(given.choices)
    if type(given) is Float and given.step is None and given.digits is None:
        return Context(given.low, given.high, log=given.log)
    raise StudyError(
        f"{label}: role = 'context' goes with categories = […] or float = {TWO}, without a step"
    )


def _distribution(label: str, table: Table) -> tuple[BaseDistribution, Parameter | None]:
    bounds = table.take("float", f"{TWO}, two finite numbers", lambda v: _is_range(v, int | float))
    whole = table.take("int", f"{TWO}, two ints", lambda v: _is_range(v, int))
    choices = table.take(
        "categories", "two or more strings, finite numbers or bools, all different", _is_choices
    )
    levels = table.take("ordinal", "two or more finite numbers, all different", _is_levels)
    log = table.take("log", "true or false", lambda v: isinstance(v, bool), False)
    step = table.take("step", "a finite number above 0", is_positive)
    digits = table.take("digits", f"an int from 0 to {MOST_DIGITS}", _is_digits)
    looks = table.take(
        "fidelity", f"{TWO}, two finite numbers", lambda v: _is_range(v, int | float)
    )
    target = table.take("target", "a value of the fidelity", is_number)
    if sum(kind is not None for kind in (bounds, whole, levels, choices, looks)) != 1:
        raise StudyError(
            f"{label} must have one of float = {TWO}, int = {TWO}, fidelity = {TWO}, "
            "ordinal = […], categories = […]"
        )
    if target is not None and looks is None:
        raise StudyError(f"{label}: target is for fidelity = {TWO}")
    if digits is not None and bounds is None:
        raise StudyError(f"{label}: digits is for float = {TWO}")
    try:
        if looks is not None:
            if step is not None or digits is not None:
                raise StudyError(f"{label}: a fidelity has neither step nor digits")
            fidelity: Parameter = Fidelity(*looks, log=log, target=target)
            return to_distribution(label, fidelity), fidelity
        if bounds is not None:
            return _float(float(bounds[0]), float(bounds[1]), log, step, digits)
        if whole is not None:
            return _int(label, whole, log, step)
    except (TypeError, ValueError) as error:
        raise StudyError(f"{label}: {error}") from error
    if log or step is not None:
        kind = "categories have" if levels is None else "ordinal has"
        raise StudyError(f"{label}: {kind} neither log nor step")
    exact = Categorical(choices) if levels is None else Ordinal(levels)
    return to_distribution(label, exact), exact


def _float(
    low: float, high: float, log: bool, step: float | None, digits: int | None
) -> tuple[BaseDistribution, Parameter | None]:
    """A range; to Optuna, a number of decimals is a step, and there are no significant figures."""
    if digits is not None:
        exact = Float(low, high, log=log, step=step, digits=digits)
        distribution = to_distribution("", exact)
        return distribution, exact if log else to_parameter(distribution)
    distribution = FloatDistribution(low, high, log=log, step=step)
    return distribution, to_parameter(distribution)


def _int(
    label: str, bounds: list[int], log: bool, step: float | None
) -> tuple[BaseDistribution, Parameter | None]:
    low, high = bounds
    if step is not None and int(step) != step:
        raise StudyError(f"{label} step must be an int, not {step!r}")
    if max(-low, high) > WHOLE:
        raise StudyError(f"{label} must be within ±2**53, to be stored; tune the distance")
    distribution = IntDistribution(low, high, log=log, step=1 if step is None else int(step))
    return distribution, to_parameter(distribution)


def _is_range(value: object, kind: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(v, kind) and is_number(v) for v in value)
    )


def _is_value(value: object) -> bool:
    return isinstance(value, str | bool) or is_finite(value)


def _is_choices(value: object) -> bool:
    plain = isinstance(value, list) and all(isinstance(v, str) or is_finite(v) for v in value)
    return plain and len(set(value)) == len(value) >= 2  # type: ignore[arg-type, call-overload]


def _is_levels(value: object) -> bool:
    return _is_choices(value) and all(map(is_number, value))  # type: ignore[call-overload]


def _is_digits(value: object) -> bool:
    return is_number(value) and isinstance(value, int) and 0 <= value <= MOST_DIGITS
