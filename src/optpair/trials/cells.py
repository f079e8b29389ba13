"""Cells of a table: text and numbers from people's files, as values; and back, without formulas."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from optpair.problem.parameters import Categorical, Parameter

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What text begins with that a spreadsheet would run."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$", re.ASCII)
YES, NO = {"true", "yes", "1"}, {"false", "no", "0"}
MISSING = {"n/a", "na", "n.a.", "n.d.", "nan", "#n/a", "none", "null", "-", "\u2013", "—", "?"}
"""What people write into a cell that is meant to be empty."""


FAILED = {"failed", "fail", "failure", "error"}
"""What people write in place of the value of a trial that failed."""


def guarded(value: object) -> object:
    """What a file holds: several numbers in a row, and no text that is a spreadsheet's formula.

    Such text gets a quotation mark in front.
    """
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def bare(cell: object) -> Any:
    """A cell without blanks around it, or the mark that `guarded` put before it.

    None if it is empty: no text, NaN, or what tables have for that.
    """
    if isinstance(cell, str):
        text = cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell.strip()
        return text or None
    if cell is None or cell is np.ma.masked:
        return None
    if isinstance(cell, np.ndarray) and cell.ndim == 1:
        return cell.tolist()
    plain = cell.item() if getattr(cell, "ndim", None) == 0 and hasattr(cell, "item") else cell
    try:
        return None if plain != plain else plain
    except (TypeError, ValueError):  # pandas' NA
        return None


def number(name: str, cell: Any) -> int | float:
    """The number in a cell that is not empty."""
    if not isinstance(cell, str):
        if isinstance(cell, bool) or not isinstance(cell, int | float):
            raise TypeError(f"{name} must be a number, not {cell!r}")
        return cell
    if not NUMBER.match(cell):
        hint = ""
        if re.fullmatch(r"[+-]?\d+,\d+([eE][+-]?\d+)?", cell):
            hint = f"; write a point for the decimal comma: {cell.replace(',', '.')}"
        elif cell.lower() in MISSING:
            hint = "; where nothing was measured, leave the cell empty"
        elif cell.lower() in FAILED:
            hint = (
                "; where a trial failed, leave the cell empty and write true in a column 'failed'"
            )
        raise ValueError(f"{name} must be a number, not {cell!r}{hint}")
    found = float(cell)
    if math.isinf(found):
        raise ValueError(f"{name} must be a finite number, not {cell!r}")
    return int(cell) if cell.lstrip("+-").isdigit() else found


def numbers(name: str, cell: Any) -> int | float | list[int | float]:
    """The number in a cell, or several: a list, or text with blanks between them."""
    words = cell.split() if isinstance(cell, str) else cell
    if isinstance(cell, str) and not all(map(NUMBER.match, words)):
        words = [cell]  # which is refused as it is
    if not isinstance(words, list | tuple) or not words:
        return number(name, cell)
    found = [number(name, word) for word in words]
    return found if len(found) > 1 else found[0]


def flag(name: str, cell: Any) -> bool:
    """Whether a cell says yes; an empty one says no."""
    text = str(cell).lower()
    if cell is not None and text not in YES | NO:
        raise ValueError(f"{name} must be true or false, not {cell!r}")
    return cell is not None and text in YES


def value_of(name: str, parameter: Parameter, cell: Any) -> Any:
    """What a cell says of a parameter; whether that is legal is not asked here."""
    if isinstance(parameter, Categorical):
        return _choice(name, parameter, cell)
    if cell is None:
        raise ValueError(f"{name} is empty: every row needs a value of every parameter")
    return number(name, cell)


def _choice(name: str, parameter: Categorical, cell: Any) -> Any:
    """The choice that is written so: text by its letters, numbers by their value."""
    if cell is not None and not isinstance(cell, str):
        return cell
    same = [choice for choice in parameter.choices if _written(choice, cell)]
    if len(same) == 1:
        return same[0]
    shown = "" if cell is None else cell
    if same:
        raise ValueError(
            f"{name} is {shown!r}, which may be any of {same!r}: rename the choices, or give rows "
            "as dicts to tell_many"
        )
    raise ValueError(f"{name} must be one of {list(parameter.choices)!r}, not {shown!r}")


def _written(choice: Any, text: str | None) -> bool:
    """Whether a cell with this text may stand for a choice; None and "" are empty cells."""
    if text is None:
        return choice is None or choice == ""
    if isinstance(choice, str):
        return choice.strip() == text
    if isinstance(choice, bool) or choice is None:
        return str(choice).lower() == text.lower()
    return bool(NUMBER.match(text)) and float(text) == choice
