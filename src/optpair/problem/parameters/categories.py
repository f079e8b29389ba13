"""Choices without an order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from optpair.problem.layout import HOT
from optpair.problem.parameters.base import (
    TUNE_NOTHING,
    Guessed,
    Value,
    When,
    assign,
    plain,
    settle_when,
)


@dataclass(frozen=True)
class Categorical(Guessed):
    """One of some choices without an order: None, bools, ints, floats or strings.

    Choices differ by type as well as by value: True, 1 and 1.0 are three choices. For ordered
    numbers, use an `Ordinal`.

    Args:
        choices: a list or tuple of at least two.
        guess: the choice that you believe is best; a wrong guess is forgotten as data come in. None
            means no guess, even if None is a choice.
        sure: the probability that it is the best; 0.7 by default.
        when: the values of other parameters with which it is active, like `{"kernel": "poly"}`; a
            list means any of its values. None means always.

    Examples:
        >>> from optpair import Space
        >>> Space({"act": Categorical(["relu", "tanh", None])}).decode([0.1, 0.9, 0.3])
        {'act': 'tanh'}
    """

    called: ClassVar[str] = "Categorical"
    choices: Sequence[Value]
    when: When | None = field(default=None, kw_only=True, hash=False)
    _typed: tuple[tuple[type, Value], ...] = field(init=False, repr=False)  # 1 == True, alas

    def __post_init__(self) -> None:
        settle_when(self)
        # The order of a set changes from process to process, and with it the cube.
        if not isinstance(self.choices, list | tuple | range | np.ndarray):
            accepted = "a list or tuple, like ['a', 'b']"
            raise TypeError(f"{self.called}'s choices must be {accepted}, not {self.choices!r}")
        assign(self, "choices", tuple(plain(choice) for choice in self.choices))
        assign(self, "_typed", tuple((type(choice), choice) for choice in self.choices))
        for i, (kind, choice) in enumerate(self._typed):
            if kind not in (type(None), bool, int, float, str):
                accepted = "None, bool, int, float or str (give it a name)"
                raise TypeError(f"{self.called}'s choices must be {accepted}, not {choice!r}")
            if isinstance(choice, float) and not math.isfinite(choice):
                raise ValueError(f"{self.called}'s choices must be finite, not {choice!r}")
            if (kind, choice) in self._typed[:i]:
                raise ValueError(f"{self.called}'s choices must differ: {choice!r} is given twice")
        if len(self.choices) < 2:
            raise ValueError(f"{self!r} must have two choices or more; {TUNE_NOTHING}")
        self._check_guess()

    def _check(self, name: str, value: object) -> Value:
        bare = plain(value)
        for kind, choice in self._typed:
            if type(bare) is kind and bare == choice:
                return choice
        raise ValueError(f"{name} must be one of {list(self.choices)!r}, not {value!r}")

    def _encode(self, value: Value) -> list[float]:
        return [HOT * (typed == (type(value), value)) for typed in self._typed]

    def _decode(self, columns: Sequence[float]) -> Value:
        return self.choices[max(range(len(self.choices)), key=columns.__getitem__)]

    _accept, _place = _check, _encode  # there is nothing between two choices
