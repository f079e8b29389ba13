"""Fidelities: how closely a trial is looked at; the answer is wanted at one of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, overload

import numpy as np

from optpair.problem.parameters.base import Value, assign, plain
from optpair.problem.parameters.floats import Float
from optpair.problem.parameters.ints import Int
from optpair.runtime.shapes import Float as Float64

LEAST_COST = 0.01
"""Of what a look at the target costs: a look is never taken to be cheaper."""


class Fidelity:
    """How closely a trial is looked at: epochs, rows of data, cells of a mesh.

    The answer is wanted at the target. Looks at other fidelities are cheaper, and still inform: a
    suggestion has the fidelity that teaches most for its cost. If both bounds are whole numbers,
    other than 0 and 1, all values are.

    Until costs are told, a look costs in proportion to the fidelity or, if the target is `low`, to
    its inverse, but never less than a hundredth of a look at the target.

    Args:
        low: the lowest fidelity.
        high: the highest.
        log: whether the scale is logarithmic, which suits most things that grow by factors.
        target: where the answer is wanted; `high` by default.

    Examples:
        >>> Fidelity(1, 81, log=True)
        Fidelity(1, 81, log=True)
        >>> Fidelity(0.05, 1.0).target
        1.0
    """

    called: ClassVar[str] = "Fidelity"
    target: Any

    @overload
    def __new__(
        cls, low: int, high: int, *, log: bool = False, target: int | None = None
    ) -> FidelityInt: ...

    @overload
    def __new__(
        cls, low: float, high: float, *, log: bool = False, target: float | None = None
    ) -> FidelityFloat: ...

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """One of whole numbers, or one of real ones."""
        if cls is not Fidelity:
            return super().__new__(cls)
        names = ("low", "high", "log", "target")
        more = [name for name in options if name not in names]
        given = [plain(value) for value in args]
        given += [plain(options[name]) for name in ("low", "high") if name in options]
        if more or len(given) != 2:
            what = f"not {more[0]}" if more else f"not {len(given)} bounds"
            raise TypeError(f"Fidelity takes low, high, log and target, {what}")
        whole = all(isinstance(v, int) and not isinstance(v, bool) for v in given)
        return super().__new__(FidelityInt if whole and given != [0, 1] else FidelityFloat)


def _settle(p: Any, kind: Any) -> None:
    """Check the target, and what is said beyond that."""
    for name in ("guess", "sure", "when"):
        if getattr(p, name) is not None:
            raise TypeError(f"Fidelity takes low, high, log and target, not {name}")
    if p.low < 0:
        raise ValueError(f"{p!r}: low must be at least 0, as costs are taken to grow with it")
    target = p.high if p.target is None else p.target
    try:
        assign(p, "target", kind._check(p, "target", target))
    except (TypeError, ValueError) as error:
        raise type(error)(f"Fidelity's {error}") from None


def _shown(p: Any) -> str:
    log = ", log=True" if p.log else ""
    target = "" if p.target in (None, p.high) else f", target={p.target!r}"
    return f"Fidelity({p.low!r}, {p.high!r}{log}{target})"


@dataclass(frozen=True)
class Price:
    """What looks are taken to cost beside one at the target, from a column of the cube."""

    column: int
    low: float
    high: float
    log: bool
    target: float

    @classmethod
    def of(cls, p: Any, column: int) -> Price:
        """That of a fidelity in a column."""
        return cls(column, float(p.low), float(p.high), p.log, float(p.target))

    def log_cost(
        self, X: Float64[np.ndarray, "q D"]
    ) -> tuple[Float64[np.ndarray, " q"], Float64[np.ndarray, " q"]]:
        """The logarithm of the cost of points, and its derivative in the column."""
        u, span = np.clip(X[:, self.column], 0.0, 1.0), self.high - self.low
        value = self.low * (self.high / self.low) ** u if self.log else self.low + u * span
        value = np.maximum(value, np.finfo(float).tiny)
        slope = np.full(len(u), math.log(self.high / self.low)) if self.log else span / value
        sign = -1.0 if self.target == self.low else 1.0
        cost = sign * (np.log(value) - math.log(max(self.target, np.finfo(float).tiny)))
        least = math.log(LEAST_COST)
        return np.maximum(cost, least), np.where(cost > least, sign * slope, 0.0)


@dataclass(frozen=True, repr=False)
class FidelityInt(Fidelity, Int):
    """A fidelity that is a whole number."""

    target: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _settle(self, Int)

    def __repr__(self) -> str:
        return _shown(self)


@dataclass(frozen=True, repr=False)
class FidelityFloat(Fidelity, Float):
    """A fidelity that is a real number."""

    target: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _settle(self, Float)

    def __repr__(self) -> str:
        return _shown(self)


def check_look(parameters: Mapping[str, Any], given: object) -> dict[str, Value]:
    """A clean copy of the fidelities of a look: see `Space.check_look`."""
    names = [name for name, p in parameters.items() if isinstance(p, Fidelity)]
    example = f"at={{{', '.join(f'{name!r}: …' for name in names)}}}"
    if not names:
        raise ValueError(f"at is {given!r:.80}, but the space has no Fidelity; leave it out")
    if not isinstance(given, Mapping):
        raise TypeError(f"at must be a dict like {example}, not {given!r:.80}")
    for name in given:
        if name not in names:
            raise ValueError(f"at has {name!r}, which is no Fidelity; give {example}")
    missing = [name for name in names if name not in given]
    if missing:
        raise ValueError(f"at is missing {', '.join(map(repr, missing))}; give {example}")
    return {name: parameters[name]._check(f"at {name!r}", given[name]) for name in names}
