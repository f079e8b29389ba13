"""Contexts: parameters that are given with every trial, and never chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, overload

from optpair.problem.parameters.base import Value
from optpair.problem.parameters.categories import Categorical
from optpair.problem.parameters.floats import Float


class Context:
    """A parameter that is given with every trial and never chosen: a site, a batch, the weather.

    The model learns across contexts; suggestions and answers are for the one that you give:
    `ask(context={"site": "A"})`, `recommend(context={"site": "B"})`. It may be one without trials.

    Args:
        choices: a list of possible values, as for `Categorical`; or, for a number,
        low: the lowest value, as for `Float`;
        high: the highest value;
        log: whether the scale is logarithmic.

    Examples:
        >>> Context(["A", "B"])
        Context(['A', 'B'])
        >>> Context(-10, 40)
        Context(-10.0, 40.0)
    """

    called: ClassVar[str] = "Context"

    @overload
    def __new__(cls, choices: Sequence[Value]) -> ContextChoices: ...

    @overload
    def __new__(cls, low: float, high: float, *, log: bool = False) -> ContextRange: ...

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """One of choices, or one of numbers."""
        if cls is not Context:
            return super().__new__(cls)
        more = [name for name in options if name not in ("choices", "low", "high", "log")]
        if more or not (args or options):
            given = f"not {more[0]}" if more else "not nothing"
            raise TypeError(
                f"Context takes choices, like ['A', 'B'], or low, high and log, {given}"
            )
        numbers = len(args) > 1 or {"low", "high"} & set(options)
        return super().__new__(ContextRange if numbers else ContextChoices)


@dataclass(frozen=True, repr=False)
class ContextChoices(Context, Categorical):
    """A context that is one of some choices."""

    def __repr__(self) -> str:
        return f"Context({list(self.choices)!r})"


@dataclass(frozen=True, repr=False)
class ContextRange(Context, Float):
    """A context that is a number."""

    def __repr__(self) -> str:
        log = ", log=True" if self.log else ""
        return f"Context({self.low!r}, {self.high!r}{log})"


def check_context(parameters: Mapping[str, Any], given: object) -> dict[str, Value]:
    """A clean copy of a context: see `Space.check_context`."""
    names = [name for name, p in parameters.items() if isinstance(p, Context)]
    if given is None and not names:
        return {}
    example = f"context={{{', '.join(f'{name!r}: …' for name in names)}}}"
    if given is None:
        raise ValueError(
            f"context is missing: {', '.join(map(repr, names))} must be given, {example}"
        )
    if not isinstance(given, Mapping):
        raise TypeError(f"context must be a dict like {example}, not {given!r:.80}")
    if not names and given:
        raise ValueError(
            f"context is {dict(given)!r:.80}, but the space has no Context; leave it out"
        )
    for name in given:
        if name not in names:
            chosen = ", which is chosen and not given" if name in parameters else ""
            raise ValueError(f"context has {name!r}{chosen}; give {example}")
    missing = [name for name in names if name not in given]
    if missing:
        raise ValueError(f"context is missing {', '.join(map(repr, missing))}; give {example}")
    return {name: parameters[name]._check(f"context {name!r}", given[name]) for name in names}
