"""Ends of a search: its budget, its time, and a rule for when hardly anything is left to be won."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from optpair.optimizer import Optimizer
from optpair.problem.stop import Stop, check_stop
from optpair.trials.numbers import as_number

SHORTEST = 1e-9  # seconds, which a clock may take for none


class Budget:
    """What all evaluations together may cost, and how the cost of one is known."""

    def __init__(self, cost: object, seconds: object, price: Any) -> None:
        if cost is not None and seconds is not None:
            raise ValueError(
                "budget_cost and budget_seconds cannot be given together: costs have one unit"
            )
        if price is not None and seconds is not None:
            raise ValueError(
                "cost and budget_seconds cannot be given together: seconds are measured; give "
                "budget_cost"
            )
        if price is not None and not callable(price):
            raise TypeError(
                "cost must be a function from a dict of parameters to what a trial costs, not "
                f"{price!r:.80}"
            )
        self.timed, self.price = seconds is not None, price
        name, most = ("budget_seconds", seconds) if self.timed else ("budget_cost", cost)
        self.most = math.inf if most is None else _above_zero(name, most)

    @property
    def given(self) -> bool:
        """Whether there is one."""
        return self.most < math.inf

    def reason(self, optimizer: Optimizer) -> str:
        """That it is spent, or an empty text."""
        if not self.given or optimizer.spent < self.most:
            return ""
        unit = " seconds" if self.timed else ""
        return f"the budget of {self.most:g}{unit} was spent"

    def cost(self, params: dict[str, Any], seconds: float) -> float | None:
        """What an evaluation cost, where that is to be told."""
        if self.price is not None:
            return self.price(params)
        return max(seconds, SHORTEST) if self.timed else None


class End:
    """What ends a search, in a context, before all evaluations are made."""

    def __init__(
        self,
        stop: Stop | None,
        seconds: float | None,
        context: Mapping[str, Any] | None,
        budget: Budget,
    ) -> None:
        self.context = context
        self.stop = None if stop is None else check_stop(stop)
        self.seconds = math.inf if seconds is None else _above_zero("seconds", seconds)
        self.budget = budget
        self._begin, self._won = time.monotonic(), False

    def won(self, optimizer: Optimizer) -> str:
        """That hardly anything is left to be won, or an empty text."""
        if self.stop is None or not optimizer.done(self.stop, context=self.context):
            return ""
        self._won = True
        return f"the search was over: {self.stop}"

    def to_go(self, optimizer: Optimizer) -> str:
        """How far off the end by `stop` is, if the search ended before and that can be said."""
        if self.stop is None or self._won:
            return ""
        more = optimizer.until(self.stop, context=self.context)
        return f"; it takes about {more} more until {self.stop}" if more else ""

    def reason(self, optimizer: Optimizer) -> str:
        """Why the search is to end now, if it is."""
        if time.monotonic() - self._begin >= self.seconds:
            return f"the {self.seconds:g} seconds were over"
        return self.at_once(optimizer)

    def at_once(self, optimizer: Optimizer) -> str:
        """The same for a search that has just begun, regardless of its time."""
        if optimizer.exhausted:
            return f"every {optimizer.space.noun} had been tried"
        return self.budget.reason(optimizer) or self.won(optimizer)


def _above_zero(name: str, given: object) -> float:
    number = as_number(given, name)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number above 0, not {given!r:.80}")
    return number
