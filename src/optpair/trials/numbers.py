"""Numbers that people tell (values, variances and costs, checked), and numbers for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from optpair.problem.defaults import LARGEST

FAILED = "if the evaluation failed, say so: tell(trial, failed=True)"


def check_value(value: object, name: str = "value", way_out: str = FAILED) -> float:
    """A finite float, or an error that says what to do instead."""
    number = as_number(value, name, way_out)
    if not abs(number) <= LARGEST:  # NaN too
        raise ValueError(
            f"{name} must be finite and within ±{LARGEST:g}, not {shown(value)}; {way_out}"
        )
    return number


def check_noise_var(value: object, name: str = "noise_var") -> float:
    """A finite variance, zero allowed."""
    number = as_number(value, name)
    if not math.isfinite(number) or number < 0:
        raise ValueError(
            f"{name} must be a finite variance ≥ 0, not {shown(value)}; leave it out where the "
            "noise is unknown"
        )
    return number


def check_cost(value: object) -> float | None:
    """A finite cost above 0; None if there is none."""
    if value is None:
        return None
    number = as_number(value, "cost")
    if not (math.isfinite(number) and number > 0):
        raise ValueError(
            f"cost must be a finite number above 0, not {shown(value)}; leave it out where it is "
            "not known"
        )
    return number


def as_number(value: object, name: str, without: str = "") -> float:
    """A number or a zero-dimensional array as a float, which may be NaN or infinite.

    `without` is the way out where there is none.
    """
    plain = value
    if getattr(value, "ndim", None) == 0 and value is not np.ma.masked:
        plain = getattr(value, "item", lambda: value)()
    refused = isinstance(plain, bool | str | bytes | bytearray | complex | np.complexfloating)
    if not refused and getattr(plain, "ndim", 0) == 0 and plain is not np.ma.masked:
        try:
            return float(plain)  # type: ignore[arg-type]
        except OverflowError:  # an int or a fraction beyond float64
            return math.inf if plain > 0 else -math.inf  # type: ignore[operator]
        except (TypeError, ValueError, RuntimeError):
            pass
    shape = f" of shape {value.shape}" if hasattr(value, "shape") else ""
    hint = f"; {without}" if value is None and without else ""
    raise TypeError(
        f"{name} must be one real number, not {type(value).__name__}{shape} ({shown(value)}){hint}"
    )


def shown(value: object) -> str:
    """A short repr: of long arrays, and of ints that Python refuses to print."""
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 80 else f"{text[:60]}… ({type(value).__name__})"


def rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values to be read by people: floats with five digits.

    >>> rounded({"lr": 0.0135733114785, "width": 64, "act": "relu"})
    {'lr': 0.013573, 'width': 64, 'act': 'relu'}
    """
    return {n: float(f"{v:.5g}") if isinstance(v, float) else v for n, v in values.items()}


def to_the_last_digit(
    params: Mapping[str, Any], tried: Mapping[str, Any], targets: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters of a point as a trial had them; fidelities stay at their targets."""
    own = {name: v for name, v in tried.items() if name in params and name not in targets}
    return {**params, **own}
