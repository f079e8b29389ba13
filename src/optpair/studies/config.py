"""The study file: what it may say, and what to say where it is wrong."""

from __future__ import annotations

import difflib
import re
import reprlib
import string
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from optpair.problem.defaults import ACQUISITION, WHOLE
from optpair.problem.outcomes import MOST_NOISE
from optpair.problem.parameters.floats import MOST_DIGITS, Float
from optpair.problem.stop import CHANCE, GAP, Stop

SQLITE = "sqlite:///"
LONGEST = 500  # characters of a name: storages keep 512
DEEPEST = 20  # levels of tables and arrays in a file
LARGEST_INT = 1024  # bits
FOREVER = 1e9  # seconds, 30 years: systems cannot wait for much longer
SECONDS = f"finite seconds above 0, at most {FOREVER:g}"
DEVIATION = f"the standard deviation of a value's noise, from 0 (exact) to {MOST_NOISE:g}"
OPTION = re.compile(r"--?[^\W\d][^={}]*$")
NEGATIVE = re.compile(r"-\d+$|-\d*\.\d+$")  # what argparse takes for a number


class StudyError(ValueError):
    """A study file, or a request, that cannot be followed; the message is for the user."""


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
class StudyFile:
    """One study, as its file describes it."""

    path: Path
    name: str
    direction: Literal["minimize", "maximize"]
    evaluations: int
    seed: int
    noise: float | None
    storage: str
    sampler: str
    stale_after: float
    settings: Mapping[str, Any]
    objective: Command | Function | None
    space: Mapping[str, BaseDistribution]
    where: tuple[str, ...]
    """Limits on the space."""
    ordinals: tuple[str, ...] = ()
    """The parameters whose categories are numbers in order."""
    stop: Stop | None = None
    guess: Mapping[str, Any] = field(default_factory=dict)
    """Where the optimum is believed to be, of some parameters,"""
    sure: Mapping[str, float] = field(default_factory=dict)
    """and the chance of it, where the file says so."""

    @property
    def folder(self) -> Path:
        """Where the file is: commands run here, and modules are found here."""
        return self.path.parent


class _Table:
    """A table of the file, from which known keys are taken one by one."""

    def __init__(self, label: str, content: object) -> None:
        if not isinstance(content, dict):
            raise StudyError(f"{label} must be a table, not {content!r}")
        self.label, self._left, self._known = label, dict(content), list[str]()

    def take(self, key: str, accepted: str, check: Any, default: Any = None) -> Any:
        """The value of a key, where `check` holds for it; an error that says what is accepted."""
        self._known.append(key)
        if key not in self._left:
            return default
        value = self._left.pop(key)
        if not check(value):
            raise StudyError(f"{self.label} {key} must be {accepted}, not {value!r}")
        return value

    def end(self) -> None:
        """An error where a key is left that nobody knows."""
        for key in self._left:
            close = difflib.get_close_matches(key, self._known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise StudyError(
                f"{self.label} has an unknown key {key!r}{hint} "
                f"It may have {', '.join(self._known)}"
            )


def load(path: str | Path) -> StudyFile:
    """Read and check a study file."""
    path = Path(path).resolve()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StudyError(f"{path} is not TOML: {error}") from error
    try:
        document = _parse(text)
    except StudyError as error:
        raise StudyError(f"{path} {error}") from error
    try:
        _check_size(document)
        return _study_file(path, document)
    except StudyError as error:
        raise StudyError(f"{path.name}: {error}") from error


def _parse(text: str) -> dict[str, Any]:
    """The TOML. An error of what is too deep or too long for the parser names the line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"is not TOML: {error}") from error
    except RecursionError:
        where, most = _worst(text, lambda line: line.count("[") + line.count("{"))
        raise StudyError(f"is nested too deeply{where if most > DEEPEST else ''}") from None
    except ValueError as error:  # Python's own limit on the digits of an int
        where, _ = _worst(text, lambda line: max(map(len, re.findall(r"\d+", line)), default=0))
        raise StudyError(f"has a number with too many digits{where}") from error


def _worst(text: str, measure: Callable[[str], int]) -> tuple[str, int]:
    """Which line has most of something, and how much."""
    lines = text.splitlines()
    index = max(range(len(lines)), key=lambda i: measure(lines[i]))
    key = lines[index].partition("=")[0].strip()
    return f" in line {index + 1}, {reprlib.repr(key)}", measure(lines[index])


def _check_size(document: dict[str, Any]) -> None:
    """Refuse what Python cannot even show: deep tables, and numbers of a thousand bits."""
    left: list[tuple[tuple[str, ...], object]] = [((), document)]
    while left:
        keys, value = left.pop()
        label = reprlib.repr(".".join(keys[:DEEPEST]))
        if len(keys) > DEEPEST:
            raise StudyError(f"{label} is nested too deeply: at most {DEEPEST} levels")
        if isinstance(value, int) and value.bit_length() > LARGEST_INT:
            raise StudyError(f"{label} must be below 2**{LARGEST_INT}: it has too many digits")
        if isinstance(value, dict):
            left += [((*keys, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            left += [((*keys, str(i)), inner) for i, inner in enumerate(value)]


def _study_file(path: Path, document: dict[str, Any]) -> StudyFile:
    top = _Table("the file", document)
    study = _Table("[study]", top.take("study", "a table", _is_table, {}))
    space = _space(_Table("[space]", top.take("space", "a table", _is_table, {})), document)
    objective = top.take("objective", "a table", _is_table)
    settings = top.take("settings", "a table", _is_table, {})
    stop = top.take("stop", "a table", _is_table)
    top.end()
    found = StudyFile(
        path=path,
        name=study.take("name", f"a name of at most {LONGEST} characters", _is_name, path.stem),
        direction=study.take(
            "direction", "'minimize' or 'maximize'", ("minimize", "maximize").__contains__,
            "minimize",
        ),
        evaluations=study.take("evaluations", "an int of at least 1", _is_count, 50),
        seed=study.take("seed", "an int of at least 0", lambda v: _is_count(v) or v == 0, 0),
        noise=study.take("noise", DEVIATION, _is_deviation),
        storage=_storage(study.take("storage", "a URL", _is_text, f"{SQLITE}{path.stem}.db"), path),
        sampler=study.take("sampler", "a name, like 'jes' or 'lattice'", _is_text, ACQUISITION),
        stale_after=float(study.take("stale_after", SECONDS, _is_seconds, 60.0)),
        settings=settings,
        objective=None if objective is None else _objective(objective, space),
        space=space,
        ordinals=tuple(name for name in space if "ordinal" in document["space"][name]),
        where=tuple(study.take("where", "limits, like ['a + b <= 1']", _is_arguments, ())),
        stop=None if stop is None else _stop(stop),
        guess={name: own["guess"] for name, own in document["space"].items() if "guess" in own},
        sure={name: own["sure"] for name, own in document["space"].items() if "sure" in own},
    )  # fmt: skip
    study.end()
    _check_limits(found)
    return found


def _check_limits(file: StudyFile) -> None:
    """Limits that can be read, and that leave something to try."""
    if not file.where:
        return
    from optpair.integrations.optuna.space import Domain  # late: few have limits
    from optpair.problem.limits import Limits

    try:
        assert Domain(file.space, file.ordinals, Limits.parse(file.where)).space
    except ValueError as error:
        raise StudyError(f"[study] {error}") from error


def _space(table: _Table, document: dict[str, Any]) -> dict[str, BaseDistribution]:
    names = list(document.get("space", {}))
    if not names:
        raise StudyError("[space] needs a parameter, like lr = { float = [1e-5, 1.0], log = true }")
    if not all(map(_is_name, names)):
        raise StudyError(f"[space] parameters must have names of 1 to {LONGEST} characters")
    space = {
        name: _distribution(f"[space] {name}", table.take(name, "a table", _is_table))
        for name in names
    }
    if all(distribution.single() for distribution in space.values()):
        raise StudyError("[space] has nothing to tune: no parameter has more than one value")
    return space


def _distribution(label: str, content: object) -> BaseDistribution:
    table = _Table(label, content)
    two = "[low, high]"
    bounds = table.take("float", f"{two}, two finite numbers", lambda v: _is_range(v, int | float))
    whole = table.take("int", f"{two}, two ints", lambda v: _is_range(v, int))
    choices = table.take(
        "categories", "two or more strings, finite numbers or bools, all different", _is_choices
    )
    levels = table.take("ordinal", "two or more finite numbers, all different", _is_levels)
    log = table.take("log", "true or false", lambda v: isinstance(v, bool), False)
    step = table.take("step", "a finite number above 0", _is_positive)
    digits = table.take("digits", f"an int from 0 to {MOST_DIGITS}", _is_digits)
    guess = table.take("guess", "a value that the parameter can have", _is_value)
    sure = table.take("sure", "a number above 0 and at most 0.99", _is_positive)
    table.end()
    if sure is not None and guess is None:
        raise StudyError(f"{label}: sure = {sure!r} needs a guess to be sure of")
    kinds = (bounds, whole, levels, choices)
    if sum(kind is not None for kind in kinds) != 1:
        raise StudyError(
            f"{label} must have one of float = {two}, int = {two}, ordinal = […], categories = […]"
        )
    if digits is not None and bounds is None:
        raise StudyError(f"{label}: digits is for float = {two}")
    try:
        if bounds is not None:
            return _float(label, bounds, log, step, digits)
        if whole is not None:
            low, high = whole
            if step is not None and int(step) != step:
                raise StudyError(f"{label} step must be an int, not {step!r}")
            if max(-low, high) > WHOLE:
                raise StudyError(f"{label} must be within ±2**53, to be stored; tune the distance")
            return IntDistribution(low, high, log=log, step=1 if step is None else step)
    except (TypeError, ValueError) as error:
        raise StudyError(f"{label}: {error}") from error
    if log or step is not None:
        kind = "categories have" if levels is None else "ordinal has"
        raise StudyError(f"{label}: {kind} neither log nor step")
    return CategoricalDistribution(choices if levels is None else sorted(levels))


def _float(
    label: str, bounds: list[float], log: bool, step: float | None, digits: int | None
) -> FloatDistribution:
    """A range; so many decimals are a step to Optuna, which knows no significant figures."""
    low, high = map(float, bounds)
    if digits is not None:
        if log:
            raise StudyError(
                f"{label}: digits and log = true cannot be stored together; list the values: "
                "ordinal = [1e-4, 2e-4, 5e-4, …]"
            )
        Float(low, high, step=step, digits=digits)
        step = float(f"1e-{digits}")
    return FloatDistribution(low, high, log=log, step=step)


def _stop(content: object) -> Stop:
    table = _Table("[stop]", content)
    gap, chance = (
        table.take(key, accepted, lambda v: _is_finite(v) and not isinstance(v, bool))
        for key, accepted in (("gap", GAP), ("chance", CHANCE))
    )
    table.end()
    if gap is None:
        raise StudyError(f"[stop] needs gap, {GAP}")
    try:
        return Stop(gap) if chance is None else Stop(gap, chance)
    except ValueError as error:
        raise StudyError(f"[stop] {error}") from error


def _objective(content: object, space: Mapping[str, object]) -> Command | Function:
    table = _Table("[objective]", content)
    arguments = table.take("command", "a list of strings", _is_arguments)
    function = table.take("python", "'module:function'", lambda v: _is_text(v) and ":" in v)
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


def _check_arguments(arguments: list[str], space: Mapping[str, object]) -> None:
    """Every {name} is a parameter, and every parameter is used; or none is (see `objective`)."""
    used = set()
    for argument in arguments:
        try:
            parts = list(string.Formatter().parse(argument))
        except ValueError as error:
            raise StudyError(
                f"[objective] {argument!r}: {error}; write {{{{ for a brace"
            ) from error
        for _, name, spec, conversion in parts:
            if name is None:
                continue
            if name not in space or spec or conversion:
                raise StudyError(
                    f"[objective] {argument!r} must have only {{name}} of [space] in braces: "
                    f"{', '.join(space)}; write {{{{ and }}}} for braces of your own"
                )
            used.add(name)
    unused = [name for name in space if name not in used]
    if used and unused:
        raise StudyError(f"[objective] command does not use {', '.join(unused)} of [space]")
    _check_dashes(arguments, space)


def _check_dashes(arguments: list[str], space: Mapping[str, object]) -> None:
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
        raise StudyError(f"[study] storage {url!r} is in memory: it would be lost; name a file")
    for scheme in (SQLITE, "journal:///"):
        if url.startswith(scheme):
            return scheme + str(path.parent / url.removeprefix(scheme))
    return url


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _is_positive(value: object) -> bool:
    return _is_finite(value) and not isinstance(value, bool) and value > 0  # type: ignore[operator]


def _is_deviation(value: object) -> bool:
    number = _is_finite(value) and not isinstance(value, bool)
    return number and 0 <= value <= MOST_NOISE  # type: ignore[operator]


def _is_seconds(value: object) -> bool:
    return _is_positive(value) and value <= FOREVER  # type: ignore[operator]


def _is_range(value: object, kind: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(v, kind) and not isinstance(v, bool) and _is_finite(v) for v in value)
    )


def _is_value(value: object) -> bool:
    return isinstance(value, str | bool) or _is_finite(value)


def _is_choices(value: object) -> bool:
    plain = isinstance(value, list) and all(isinstance(v, str) or _is_finite(v) for v in value)
    return plain and len(set(value)) == len(value) >= 2  # type: ignore[arg-type, call-overload]


def _is_levels(value: object) -> bool:
    numbers = isinstance(value, list) and all(
        _is_finite(v) and not isinstance(v, bool) for v in value
    )
    return numbers and len(set(value)) == len(value) >= 2  # type: ignore[arg-type, call-overload]


def _is_digits(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_DIGITS


def _is_arguments(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))
