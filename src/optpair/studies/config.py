"""The study file: what it may contain, and messages for what is wrong with it."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from optuna.distributions import CategoricalDistribution

from optpair.problem.outcomes import MOST_NOISE, Constraint, Objective, Outcome
from optpair.problem.problem import VALUE
from optpair.problem.stop import CHANCE, GAP, Stop
from optpair.studies.document import (
    LONGEST,
    StudyError,
    Table,
    check_size,
    is_count,
    is_name,
    is_number,
    is_positive,
    is_table,
    is_text,
    is_texts,
    parse,
)
from optpair.studies.outcomes import read_outcomes
from optpair.studies.spaces import StudySpace, read_space

__all__ = ["Budget", "Command", "Function", "StudyError", "StudyFile", "load", "names_in"]

SQLITE = "sqlite:///"
ENDLESS = 10**9
"""Evaluations of a study that only its budget ends."""

FOREVER = 1e9  # seconds, 30 years: systems cannot wait for much longer
SECONDS = f"finite seconds above 0, at most {FOREVER:g}"
DEVIATION = f"the standard deviation of a value's noise, from 0 (exact) to {MOST_NOISE:g}"
OPTION = re.compile(r"--?[^\W\d][^={}]*$")
NEGATIVE = re.compile(r"-\d+$|-\d*\.\d+$")  # what argparse takes for a number


@dataclass(frozen=True)
class Command:
    """A program and its arguments, with {name} where a parameter's value goes."""

    arguments: tuple[str, ...]
    timeout: float | None


@dataclass(frozen=True)
class Function:
    """`module:function`, which takes a dict of parameters."""

    module: str
    name: str


@dataclass(frozen=True)
class Budget:
    """What all trials together may cost; seconds are measured, and told as costs."""

    most: float
    timed: bool = False

    def __str__(self) -> str:
        return f"{self.most:g}{' seconds' if self.timed else ''}"


@dataclass(frozen=True)
class StudyFile:
    """One study, as its file describes it."""

    path: Path
    name: str
    outcomes: Mapping[str, Outcome]
    """What a trial gives, by name: `VALUE` alone where the file has no [outcomes]."""
    named: bool
    """Whether the file has [outcomes]."""
    evaluations: int
    seed: int
    storage: str
    sampler: str | None
    stale_after: float
    settings: Mapping[str, Any]
    objective: Command | Function | None
    space: StudySpace
    stop: Stop | None = None
    budget: Budget | None = None
    earlier: tuple[str, ...] = ()
    """Files of earlier studies, beside this one or elsewhere."""

    @property
    def folder(self) -> Path:
        """Where the file is: commands run here, and modules are found here."""
        return self.path.parent

    @property
    def objectives(self) -> dict[str, Objective]:
        """What is to be as small or as large as possible."""
        return {name: o for name, o in self.outcomes.items() if isinstance(o, Objective)}

    @property
    def constraints(self) -> dict[str, Constraint]:
        """What must stay within limits."""
        return {name: o for name, o in self.outcomes.items() if isinstance(o, Constraint)}

    @property
    def noise(self) -> float | None:
        """The standard deviation of the noise of the only outcome; None if it has a name."""
        return None if self.named else self.outcomes[VALUE].noise


_OTHERS = (
    "optpair report and optpair watch also read storages of Optuna and saved runs, and optpair "
    "report --json prints their recommendation"
)


def load(path: str | Path) -> StudyFile:
    """Read and check a study file."""
    if "://" in str(path):
        raise StudyError(f"a storage's URL is no study file (TOML); {_OTHERS}")
    path = Path(path).resolve()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StudyError(f"{path} is not text, and so no study file (TOML); {_OTHERS}") from error
    try:
        document = parse(text)
    except StudyError as error:
        if text.lstrip()[:1] == "{":
            raise StudyError(f"{path} is JSON, and no study file (TOML); {_OTHERS}") from error
        raise StudyError(f"{path} {error}") from error
    try:
        check_size(document)
        return _study_file(path, document)
    except StudyError as error:
        raise StudyError(f"{path.name}: {error}") from error


def _study_file(path: Path, document: dict[str, Any]) -> StudyFile:
    top = Table("the file", document)
    study = Table("[study]", top.take("study", "a table", is_table, {}))
    where = tuple(study.take("where", "limits, like ['a + b <= 1']", is_texts, ()))
    space = read_space(top.take("space", "a table", is_table, {}), where, path.parent)
    objective = top.take("objective", "a table", is_table)
    named = top.take("outcomes", "a table", is_table)
    outcomes = _outcomes(study, named)
    settings = top.take("settings", "a table", is_table, {})
    stop = top.take("stop", "a table", is_table)
    given = top.take("budget", "a table", is_table)
    budget = None if given is None else _budget(given)
    top.end()
    found = StudyFile(
        path=path,
        name=study.take("name", f"a name of at most {LONGEST} characters", is_name, path.stem),
        outcomes=outcomes,
        named=named is not None,
        evaluations=_most(
            study.take(
                "evaluations", "an int of at least 1", is_count, 50 if budget is None else ENDLESS
            ),
            space,
        ),
        seed=study.take("seed", "an int of at least 0", lambda v: is_count(v) or v == 0, 0),
        storage=_storage(study.take("storage", "a URL", is_text, f"{SQLITE}{path.stem}.db"), path),
        sampler=study.take("sampler", "a name, like 'jes' or 'lattice'", is_text, None),
        stale_after=float(study.take("stale_after", SECONDS, _is_seconds, 60.0)),
        settings=settings,
        objective=None if objective is None else _objective(objective, space),
        space=space,
        stop=None if stop is None else _stop(stop),
        budget=budget,
        earlier=tuple(study.take("earlier", "files, like ['may.toml', 'a.csv']", is_texts, ())),
    )
    study.end()
    if found.stop is not None and len(found.objectives) > 1:
        raise StudyError(
            f"[stop] needs one objective, and there are {', '.join(found.objectives)}: give all "
            "but one a limit instead (low or high), or leave [stop] out"
        )
    return found


def _outcomes(study: Table, named: Mapping[str, Any] | None) -> dict[str, Outcome]:
    """Those of [outcomes], or the only one, of which [study] says what is wanted."""
    accepted = "'minimize' or 'maximize'"
    direction = study.take("direction", accepted, ("minimize", "maximize").__contains__)
    noise = study.take("noise", DEVIATION, _is_deviation)
    if named is None:
        return {VALUE: Objective(direction or "minimize", noise)}
    for key, given in (("direction", direction), ("noise", noise)):
        if given is not None:
            raise StudyError(
                f"[study] {key} = {given!r} and [outcomes] cannot be given together: each outcome "
                f"has its own, like {{ direction = 'minimize', noise = 0 }}; leave it out"
            )
    return read_outcomes(named)


def _most(evaluations: int, space: StudySpace) -> int:
    """No more than there are rows, where each is tried once."""
    shelf = None if space.shelf is None else space.shelf.shelf
    return evaluations if shelf is None or shelf.repeat else min(evaluations, len(shelf.rows))


def _budget(content: object) -> Budget:
    table = Table("[budget]", content)
    cost = table.take("cost", "a finite number above 0", is_positive)
    seconds = table.take("seconds", SECONDS, _is_seconds)
    table.end()
    if (cost is None) == (seconds is None):
        raise StudyError(
            "[budget] must have either cost or seconds, for all trials together: costs have one "
            "unit"
        )
    return Budget(float(cost or seconds), timed=cost is None)


def _stop(content: object) -> Stop:
    table = Table("[stop]", content)
    gap, chance = (
        table.take(key, accepted, is_number) for key, accepted in (("gap", GAP), ("chance", CHANCE))
    )
    table.end()
    if gap is None:
        raise StudyError(f"[stop] needs gap, {GAP}")
    try:
        return Stop(gap) if chance is None else Stop(gap, chance)
    except ValueError as error:
        raise StudyError(f"[stop] {error}") from error


def _objective(content: object, space: StudySpace) -> Command | Function:
    table = Table("[objective]", content)
    arguments = table.take("command", "a list of strings", is_texts)
    function = table.take("python", "'module:function'", lambda v: is_text(v) and ":" in v)
    timeout = table.take("timeout", SECONDS, _is_seconds)
    table.end()
    if (arguments is None) == (function is None):
        raise StudyError("[objective] must have either command = […] or python = 'module:function'")
    if arguments is None:
        if timeout is not None:
            raise StudyError("[objective] timeout is for a command; a function cannot be stopped")
        module, _, name = function.partition(":")
        return Function(module, name)
    _check_arguments(arguments, space)
    return Command(tuple(arguments), timeout)


def _check_arguments(arguments: list[str], space: StudySpace) -> None:
    """Every {name} is a parameter, and every parameter is used; or none is (see `objective`).

    For a shelf, the columns that label a row may replace those that describe it.
    """
    used, names = set(), [*space, *space.columns]
    for argument in arguments:
        for name in names_in(argument):
            if name not in names:
                raise StudyError(
                    f"[objective] {argument!r} must have only {{name}} of [space] in braces: "
                    f"{', '.join(names)}; write {{{{ and }}}} for braces of your own"
                )
            used.add(name)
    unused = [name for name in space if name not in used]
    if used and unused and not used & set(space.columns):
        raise StudyError(f"[objective] command does not use {', '.join(unused)} of [space]")
    _check_dashes(arguments, space)
    _check_options(arguments, space)


def names_in(argument: str) -> list[str]:
    """The names in the braces of an argument; anything else in braces is returned as it is."""
    try:
        parts = list(string.Formatter().parse(argument))
    except ValueError as error:
        raise StudyError(f"[objective] {argument!r}: {error}; write {{{{ for a brace") from error
    return [
        f"{name}{'!' if conversion else ''}{conversion or ''}{':' if spec else ''}{spec or ''}"
        for _, name, spec, conversion in parts
        if name is not None
    ]


def _check_options(arguments: list[str], space: StudySpace) -> None:
    """An argument of a parameter that is not there is left out, but not the option before it."""
    for option, argument in pairwise(arguments):
        if OPTION.match(option) and set(names_in(argument)) & space.conditions.when.keys():
            raise StudyError(
                f"[objective] {option!r}, {argument!r} would leave the option without a value when "
                f"the parameter is inactive; write {option + '=' + argument!r}"
            )


def _check_dashes(arguments: list[str], space: StudySpace) -> None:
    """After an option, a category that begins with a dash would be taken for another option."""
    for option, argument in pairwise(arguments):
        distribution = space.get(argument[1:-1]) if argument.startswith("{") else None
        if not isinstance(distribution, CategoricalDistribution) or not OPTION.match(option):
            continue
        for choice in distribution.choices:
            if isinstance(choice, str) and choice.startswith("-") and not NEGATIVE.match(choice):
                raise StudyError(
                    f"[objective] {option!r}, {argument!r} would pass the category {choice!r}, "
                    f"which programs take for an option; write {option + '=' + argument!r}"
                )


def _storage(url: str, path: Path) -> str:
    """The URL, with a file's path taken from the study file's folder."""
    if url in (f"{SQLITE}:memory:", SQLITE, "sqlite://"):
        raise StudyError(
            f"[study] storage {url!r} is in memory and would be lost: give the name of a file"
        )
    for scheme in (SQLITE, "journal:///"):
        if url.startswith(scheme):
            return scheme + str(path.parent / url.removeprefix(scheme))
    return url


def _is_deviation(value: object) -> bool:
    return is_number(value) and 0 <= value <= MOST_NOISE  # type: ignore[operator]


def _is_seconds(value: object) -> bool:
    return is_positive(value) and value <= FOREVER  # type: ignore[operator]
