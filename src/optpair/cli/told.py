"""What a person tells on the command line: values and variances, alone or by outcomes' names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from optpair.cli.exit_codes import USAGE, fail
from optpair.problem.defaults import LARGEST


def numbers(what: str, words: Sequence[str]) -> dict[str, list[float]]:
    """Numbers by the names of their outcomes, "" where there is none.

    Words are like 0.93 or accuracy=0.93, or a JSON object like the last line of a command. Several
    of one name are repeated measurements.
    """
    found: dict[str, list[float]] = {}
    for word in words:
        for name, values in _pairs(what, word).items():
            found.setdefault(name, []).extend(values)
    return found


def named(what: str, words: Sequence[str]) -> dict[str, float]:
    """Numbers that need names, one for each."""
    found = numbers(what, words)
    if "" in found:
        fail(f"{what} must be like NAME=NUMBER, not {found[''][0]:g}", USAGE)
    for name, values in found.items():
        if len(values) > 1:
            fail(f"{what} is given twice for {name}", USAGE)
    return {name: values[0] for name, values in found.items()}


def _pairs(what: str, word: str) -> dict[str, list[float]]:
    if word.lstrip().startswith("{"):
        try:
            given = json.loads(word)
        except ValueError as error:
            fail(f"{what} {word!r} is not JSON: {error}", USAGE)
        return {
            name: [_number(what, v) for v in (value if isinstance(value, list) else [value])]
            for name, value in given.items()
            if value is not None
        }
    name, sign, value = word.rpartition("=")
    if sign and not name:
        fail(f"{what} must be like NAME=VALUE, not {word!r}", USAGE)
    return {name.strip(): [_number(what, value, f"leave {name.strip()} out")]}


def _number(what: str, given: Any, out: str = "use --failed if it failed") -> float:
    try:
        value = float(given)
    except (TypeError, ValueError):
        fail(f"{what} must be a number, not {given!r}{_hint(str(given))}", USAGE)
    if not abs(value) <= LARGEST:
        fail(f"{what} must be a finite number, not {value}; {out}", USAGE)
    return value


def _hint(given: str) -> str:
    """How a number may be written that was not understood."""
    point = re.sub(r"(?<=\d),(?=\d)", ".", given.strip().removesuffix("%").strip(), count=1)
    try:
        return f"; write {float(point):g}"
    except ValueError:
        return ""


def texts(what: str, words: Sequence[str]) -> dict[str, str]:
    """Texts by name, from words like operator=Ann."""
    found = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not (sign and name.strip()):
            fail(f"{what} must be like NAME=TEXT, not {word!r}", USAGE)
        found[name.strip()] = text.strip()
    return found


def variances(
    words: Sequence[str] | None, values: Mapping[str, object], failed: bool, message: str | None
) -> dict[str, float]:
    """The variances that go with some values; a message goes with none."""
    if (words and not values) or (message and not failed):
        fail("--noise-var goes with VALUE, --message with --failed", USAGE)
    found: dict[str, float] = {}
    for word in words or ():
        name, _, given = word.rpartition("=")
        try:
            found[name.strip()] = float(given)
        except ValueError:
            fail(f"--noise-var must be a number, not {given!r}", USAGE)
    for variance in found.values():
        if not 0 <= variance <= LARGEST:
            fail(f"--noise-var must be a finite variance, not {variance:g}", USAGE)
    return found
