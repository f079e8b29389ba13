"""Points of one's own, from the words of a command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from optpair.integrations.optuna.attributes import actual_of
from optpair.problem.columns import accept
from optpair.problem.parameters import Categorical, Int
from optpair.studies.config import StudyError
from optpair.studies.spaces import StudySpace

PARAMS, CONTEXT, ACTUAL = "--params", "--context", "--actual"
"""The options that words are given to."""


def context(words: Sequence[str], space: StudySpace) -> dict[str, Any]:
    """What words like site=A give, or one JSON object: a value for each context of a study.

    Raises:
        StudyError: if a context is missing, unknown, given twice or not legal.
    """
    given, names = _given(words, CONTEXT), space.contexts
    if given and not names:
        raise StudyError(
            f"{CONTEXT} is given, but [space] has no context: a parameter with role = 'context'"
        )
    for name in given:
        if name not in names:
            chosen = ", which is chosen and not given" if name in space else ""
            raise StudyError(f"{CONTEXT} has {name!r}{chosen}; [space] has {', '.join(names)}")
    missing = [name for name in names if name not in given]
    if missing:
        raise StudyError(
            f"{CONTEXT} lacks {', '.join(missing)}: what is given with every trial must be said, "
            f"like {CONTEXT} {missing[0]}=…"
        )
    return {name: _value(name, given[name], space[name], CONTEXT) for name in names}


def point(words: Sequence[str], space: StudySpace) -> dict[str, Any]:
    """The parameters that words like lr=0.1 give, or one JSON object with all of them.

    Args:
        words: one per parameter, or one JSON object, like `params` of `optpair ask --json`.
        space: the study's parameters.

    Raises:
        StudyError: if a parameter is missing, unknown, given twice or outside its range.
    """
    given = _given(words, PARAMS)
    unknown = [name for name in given if name not in space]
    if unknown:
        raise StudyError(f"--params has {unknown[0]!r}, but [space] has {', '.join(space)}")
    found: dict[str, Any] = {}
    missing: list[str] = []
    for name in space.order:
        here = space.conditions.holds(name, found)
        if not here and name in given and not missing:
            why = space.conditions.reason(name)
            raise StudyError(f"--params has {name!r}, which is there only when {why}: leave it out")
        if here and name in given:
            found[name] = _legal(name, given[name], space)
        elif here:
            missing.append(name)
    if missing:
        raise StudyError(
            f"--params lacks {', '.join(missing)}: give every parameter of [space], like "
            f"--params {missing[0]}=…; what was really run for a trial that was asked for is "
            f"{ACTUAL}"
        )
    return {name: found[name] for name in space if name in found}


def _legal(name: str, given: Any, space: StudySpace) -> Any:
    """A value that could be suggested. Of any other, the error says how it may be told."""
    p, number = space.parameters.get(name), _number(given)
    try:
        value = _value(name, given, space[name], PARAMS)
        return value if p is None or isinstance(p, Categorical) else p._check(name, value)
    except (TypeError, ValueError) as error:  # a StudyError is one
        said = str(error) if isinstance(error, StudyError) else f"{PARAMS} {error}"
        if p is None or isinstance(p, Categorical) or number is None:
            raise StudyError(said) from error
        with suppress(TypeError, ValueError):
            accept(p, name, number)
            said += "; if it was really run so, a table takes it as data: see optpair import"
        raise StudyError(said) from error


def actual(words: Sequence[str], space: StudySpace, trial: FrozenTrial) -> dict[str, Any]:
    """What was really run in place of what a trial was asked for, by parameter.

    Values may be between levels or outside the range; choices are those of the study. What was said
    before of other parameters still holds.

    Raises:
        StudyError: if the trial has no such parameter, or a value cannot be meant.
    """
    found, asked = actual_of(trial), trial.params
    for name, given in _given(words, ACTUAL).items():
        if name not in asked:
            raise StudyError(
                f"{ACTUAL} has {name!r}, but trial {trial.number} has {', '.join(asked)}"
            )
        p = space.parameters.get(name)
        if p is None or isinstance(p, Categorical):
            found[name] = _value(name, given, space[name], ACTUAL)
            continue
        value = _number(given)
        if value is None:
            raise _refused(name, given, "a number", ACTUAL)
        try:
            whole = isinstance(p, Int) and value == int(value)
            found[name] = accept(p, name, int(value) if whole else value)
        except (OverflowError, TypeError, ValueError) as error:
            raise StudyError(f"{ACTUAL} {error}") from error
    found = {name: value for name, value in found.items() if value != asked[name]}
    if found and space.domain.encode({**asked, **found}, anywhere=True) is None:
        raise StudyError(
            f"{ACTUAL} has another value of what other parameters depend on: use tell with "
            f"{PARAMS}, for a point of your own"
        )
    return found


def _given(words: Sequence[str], option: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for word in words:
        for name, value in _read(word, option).items():
            if name in given:
                raise StudyError(f"{option} gives {name!r} twice")
            given[name] = value
    return given


def _read(word: str, option: str) -> dict[str, Any]:
    if word.lstrip().startswith("{"):
        try:
            return dict(json.loads(word))
        except ValueError as error:
            raise StudyError(f"{option} {word!r} is not JSON: {error}") from error
    name, sign, value = word.partition("=")
    if not sign:
        raise StudyError(f"{option} must be like name=value, or a JSON object, not {word!r}")
    return {name.strip(): value.strip()}


def _value(name: str, given: Any, distribution: BaseDistribution, option: str) -> Any:
    """The value as the study has it; numbers and categories may come as text."""
    if isinstance(distribution, CategoricalDistribution):
        for choice in distribution.choices:
            if _same(given, choice):
                return choice
        raise _refused(name, given, f"one of {', '.join(map(str, distribution.choices))}", option)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    whole = isinstance(distribution, IntDistribution)
    accepted = f"{'an int' if whole else 'a number'} from {distribution.low:g} to " + (
        f"{distribution.high:g}"
    )
    if distribution.step is not None and not (whole and distribution.step == 1):
        accepted += f" in steps of {distribution.step:g}"
    value = _number(given)
    if value is None or not distribution.low <= value <= distribution.high:  # NaN is not either
        raise _refused(name, given, accepted, option)
    if not _on_grid(value, distribution):
        raise _refused(name, given, accepted, option)
    return int(value) if whole else value


def _on_grid(value: float, distribution: FloatDistribution | IntDistribution) -> bool:
    if distribution.step is None:
        return True
    steps = (value - distribution.low) / distribution.step
    return abs(steps - round(steps)) < 1e-8


def _same(given: Any, choice: Any) -> bool:
    if isinstance(choice, int | float) and not isinstance(choice, bool):
        return _number(given) == choice
    if isinstance(given, str):
        spellings = {str(choice)} | ({str(choice).lower()} if isinstance(choice, bool) else set())
        return given in spellings
    return type(given) is type(choice) and given == choice


def _number(given: Any) -> float | None:
    """A number by any spelling: 1e-4 is 0.0001. True and false are none."""
    try:
        return None if isinstance(given, bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        return None


def _refused(name: str, given: Any, accepted: str, option: str) -> StudyError:
    return StudyError(f"{option} {name} must be {accepted}, not {given!r}")
