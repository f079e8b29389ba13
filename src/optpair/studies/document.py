"""Study files as text: TOML that is read, and tables whose keys are taken one by one."""

from __future__ import annotations

import difflib
import re
import reprlib
import sys
import tomllib
from collections.abc import Callable
from typing import Any

LONGEST = 500  # characters of a name: storages keep 512
DEEPEST = 20  # levels of tables and arrays in a file
LARGEST_INT = 1024  # bits


class StudyError(ValueError):
    """A study file, or a request, that cannot be followed; the message is for the user."""


class Table:
    """A table of the file, from which known keys are taken one by one."""

    def __init__(self, label: str, content: object) -> None:
        if not isinstance(content, dict):
            raise StudyError(f"{label} must be a table, not {content!r}")
        self.label, self._left, self._known = label, dict(content), list[str]()

    def take(self, key: str, accepted: str, check: Any, default: Any = None) -> Any:
        """The value of a key, if `check` accepts it; else an error that says what is accepted."""
        self._known.append(key)
        if key not in self._left:
            return default
        value = self._left.pop(key)
        if not check(value):
            raise StudyError(f"{self.label} {key} must be {accepted}, not {value!r}")
        return value

    def end(self) -> None:
        """Raise an error for a key that is left, which is unknown."""
        for key in self._left:
            close = difflib.get_close_matches(key, self._known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise StudyError(
                f"{self.label} has an unknown key {key!r}{hint} "
                f"It may have {', '.join(self._known)}"
            )


def parse(text: str) -> dict[str, Any]:
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


def check_size(document: dict[str, Any]) -> None:
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


def is_table(value: object) -> bool:
    """Whether it is a table."""
    return isinstance(value, dict)


def is_text(value: object) -> bool:
    """Whether it is a text that is not empty."""
    return isinstance(value, str) and bool(value)


def is_name(value: object) -> bool:
    """Whether storages can keep it as a name."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST


def is_count(value: object) -> bool:
    """Whether it is an int of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def is_finite(value: object) -> bool:
    """Whether it is a finite number, or a bool."""
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def is_positive(value: object) -> bool:
    """Whether it is a finite number above 0."""
    return is_number(value) and value > 0  # type: ignore[operator]


def is_number(value: object) -> bool:
    """Whether it is a finite number, and no bool."""
    return is_finite(value) and not isinstance(value, bool)


def is_texts(value: object) -> bool:
    """Whether it is a list of texts, with at least one."""
    return isinstance(value, list) and bool(value) and all(map(is_text, value))
