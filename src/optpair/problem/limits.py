"""Limits on the parameters: linear ones, written as text, and a function for the rest.

A text such as "a + b <= 2 * c" is parsed, never run. Numbers are the decimals that were written,
and arithmetic is exact: 0.1 + 0.2 == 0.3 holds here.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optpair.problem.conditions import Conditions
from optpair.problem.parameters import Context, Fidelity, Float, Int, Ordinal, Parameter

Function = Callable[[dict[str, Any]], bool]
Where = str | Function | Sequence[str | Function]

LONGEST = 5000
"""Characters of one text."""

QUOTED = re.compile(r"`([^`]*)`")
COMPARED: dict[type[ast.cmpop], int] = {ast.LtE: 1, ast.Lt: 1, ast.GtE: -1, ast.Gt: -1, ast.Eq: 0}
EXAMPLE = "'a + b <= 1', 'a + b + c == 1' or '0.2 <= a + b <= 0.8'"

MEANT = {"≤": "<=", "≥": ">=", "=<": "<=", "=>": ">="}
"""What people write for a comparison, and what it is here."""

SINGLE = re.compile(r"(?<![<>=!])=(?![=<>])")

Terms = dict[str, Fraction]  # by name; under "" the constant


@dataclass(frozen=True)
class Limit:
    """Σ weight · value ≤ high, or = high; several may come from one text."""

    text: str
    weights: tuple[tuple[str, Fraction], ...]
    high: Fraction
    equal: bool

    def scale(self, parameters: Mapping[str, Parameter]) -> Fraction:
        """The largest that one term can be."""
        sizes = ((w, numeric(parameters[name])) for name, w in self.weights)
        return max(abs(w) * max(abs(exact(p.low)), abs(exact(p.high))) for w, p in sizes)

    def fixed(self, values: Mapping[str, Any]) -> Limit:
        """The limit where some parameters have one value only."""
        known = [(name, w) for name, w in self.weights if name in values]
        for name, _ in known:
            if isinstance(values[name], bool) or not isinstance(values[name], int | float):
                raise _refused(self.text, f"has {name!r}, which has no number; use a function")
        high = self.high - sum(w * exact(values[name]) for name, w in known)
        weights = tuple(pair for pair in self.weights if pair not in known)
        return Limit(self.text, weights, high, self.equal)


@dataclass(frozen=True)
class Limits:
    """Everything that `where` says: linear limits, and perhaps a function of the parameters."""

    texts: tuple[str, ...] = ()
    linear: tuple[Limit, ...] = ()
    function: Function | None = None

    @classmethod
    def parse(cls, where: Where | Limits) -> Limits:
        """What the user wrote; whether the names are known is checked by `check_names`."""
        if isinstance(where, Limits):
            return where
        accepted = f"texts like {EXAMPLE}, and a function of the parameters for the rest"
        given = [where] if isinstance(where, str) or callable(where) else where
        if not isinstance(given, list | tuple):
            raise TypeError(f"where must be a list of {accepted}, not {where!r:.80}")
        for one in given:
            if not (isinstance(one, str) or callable(one)):
                raise TypeError(f"where must have {accepted}, not {one!r:.80}")
        functions = [one for one in given if not isinstance(one, str)]
        if len(functions) > 1:
            raise ValueError(
                f"where may have one function, not {len(functions)}: combine them in one with `and`"
            )
        texts = tuple(one for one in given if isinstance(one, str))
        linear = tuple(limit for text in texts for limit in parse(text))
        return cls(texts, linear, functions[0] if functions else None)

    def __bool__(self) -> bool:
        return bool(self.linear) or self.function is not None

    def __repr__(self) -> str:
        return repr([*self.texts, *([] if self.function is None else [self.function])])

    def fixed(self, values: Mapping[str, Any]) -> Limits:
        """The limits where some parameters have one value only; the function is another's care."""
        linear = []
        for limit in self.linear:
            left = limit.fixed(values)
            if left.weights:
                linear.append(left)
            elif left.high < 0 or (left.equal and left.high > 0):
                raise _refused(limit.text, f"cannot be met with {dict(values)!r}")
        return Limits(self.texts, tuple(linear), self.function)

    def check_names(self, parameters: Mapping[str, Parameter]) -> Limits:
        """The limits with the parameters' own spelling, or an error with the way out."""
        same = {unicodedata.normalize("NFKC", name): name for name in parameters}
        lower = {name.lower(): name for name in parameters}
        linear = []
        for limit in self.linear:
            weights = []
            for name, weight in limit.weights:
                known = name if name in parameters else same.get(name)
                if known is None:
                    close = difflib.get_close_matches(name.lower(), lower, n=1)
                    hint = f"; did you mean {lower[close[0]]!r}?" if close else "."
                    raise ValueError(
                        f"where {limit.text!r} has an unknown name {name!r}{hint} "
                        f"The space has {', '.join(map(repr, parameters))}"
                    )
                _check_kind(limit.text, known, parameters[known])
                weights.append((known, weight))
            linear.append(Limit(limit.text, tuple(weights), limit.high, limit.equal))
        return Limits(self.texts, tuple(linear), self.function)

    def check_conditions(self, conditions: Conditions) -> None:
        """Texts are of what is always there, and decides on nothing."""
        for limit in self.linear:
            for name, _ in limit.weights:
                if name in conditions.when or name in conditions.parents:
                    why = "has `when`" if name in conditions.when else "others depend on"
                    raise ValueError(
                        f"where {limit.text!r} names {name!r}, which {why}: use a function of the "
                        f"active parameters: where=lambda p: {name!r} not in p or …"
                    )

    def allows(self, values: Mapping[str, Any]) -> bool:
        """What the function says of values; True where there is none."""
        if self.function is None:
            return True
        try:
            said = self.function(dict(values))
        except Exception as error:
            error.add_note(f"while where's function was asked about {dict(values)!r}")
            raise
        if not isinstance(said, bool | np.bool_):
            raise TypeError(
                f"where's function must return True or False, not {said!r:.80} for {dict(values)!r}"
            )
        return bool(said)

    def to_json(self) -> list[str]:
        """The texts."""
        if self.function is not None:
            raise TypeError(
                "a space with a function in where cannot be saved: functions are not written to "
                "files. State the limits as texts, or build the space again and tell its trials"
            )
        return list(self.texts)


def parse(text: str) -> Iterator[Limit]:
    """The limits of one text, one for each comparison in it.

    >>> [(limit.weights, limit.high) for limit in parse("2 * a <= 1 + b / 2")]
    [((('a', Fraction(2, 1)), ('b', Fraction(-1, 2))), Fraction(1, 1))]
    """
    quoted: dict[str, str] = {}

    def stand_in(found: re.Match[str]) -> str:
        quoted[name := f"_quoted_{len(quoted)}_"] = found[1]
        return f" {name} "

    if len(text) > LONGEST:
        raise ValueError(f"where has a text of {len(text)} characters; at most {LONGEST} are read")
    try:
        tree = ast.parse(QUOTED.sub(stand_in, text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        found = [f"; for {mark} write {sign}" for mark, sign in MEANT.items() if mark in text]
        found += ["; for = write =="] * bool(SINGLE.search(text))
        raise _refused(text, f"cannot be read{''.join(found)}; write it like {EXAMPLE}") from error
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        raise _refused(text, "has an `and`: give a text for each part, in a list")
    if not isinstance(tree, ast.Compare):
        raise _refused(text, f"must be a comparison, like {EXAMPLE}")
    try:
        sides = [_terms(text, node, quoted) for node in (tree.left, *tree.comparators)]
    except RecursionError as error:
        raise _refused(text, "is nested too deeply") from error
    for (left, right), operator in zip(itertools.pairwise(sides), tree.ops, strict=True):
        sign = COMPARED.get(type(operator))
        if sign is None:
            raise _refused(text, "may have <=, >=, <, > and ==; for anything else, use a function")
        total = _sum(left, right, Fraction(-1))
        weights = {name: w * (sign or 1) for name, w in total.items() if name and w}
        if not weights:
            raise _refused(text, "names no parameter that makes a difference to it; leave it out")
        yield Limit(
            text, tuple(weights.items()), -total.get("", Fraction(0)) * (sign or 1), not sign
        )


def _terms(text: str, node: ast.expr, quoted: Mapping[str, str]) -> Terms:
    """A linear expression as the weights of its names."""
    match node:
        case ast.Name(id=name):
            return {quoted.get(name, name): Fraction(1)}
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if not abs(value) <= 1e300:  # NaN too, and ints that have no float
                raise _refused(text, "has a number beyond 1e300; use other units")
            return {"": exact(value)}
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _terms(text, inner, quoted)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _sum({}, _terms(text, inner, quoted), Fraction(-1))
        case ast.BinOp(left=first, op=ast.Add() | ast.Sub() as op, right=second):
            sign = Fraction(1 if isinstance(op, ast.Add) else -1)
            return _sum(_terms(text, first, quoted), _terms(text, second, quoted), sign)
        case ast.BinOp(left=first, op=ast.Mult() | ast.Div() as op, right=second):
            left, right = _terms(text, first, quoted), _terms(text, second, quoted)
            if isinstance(op, ast.Mult) and not set(left) - {""}:
                left, right = right, left
            if set(right) - {""}:
                raise _refused(text, "is not linear; use a function: where=lambda p: …")
            factor = right.get("", Fraction(0))
            if isinstance(op, ast.Div):
                if not factor:
                    raise _refused(text, "divides by zero")
                factor = 1 / factor
            return _sum({}, left, factor)
        case _:
            raise _refused(
                text,
                "may have numbers, names, + - * / and parentheses, not "
                f"{ast.unparse(node)!r:.40}; for anything else, use a function: where=lambda p: … "
                "A name with spaces goes in `backticks`",
            )


def _sum(first: Terms, second: Terms, factor: Fraction) -> Terms:
    names = dict.fromkeys([*first, *second])
    return {n: first.get(n, Fraction(0)) + factor * second.get(n, Fraction(0)) for n in names}


def _refused(text: str, why: str) -> ValueError:
    shown = text if len(text) <= 80 else text[:80] + "…"
    return ValueError(f"where {shown!r} {why}")


def _check_kind(text: str, name: str, p: Parameter) -> None:
    if isinstance(p, Ordinal):
        raise _refused(
            text,
            f"has {name!r}, an Ordinal, whose levels are at uneven distances; use a function: "
            f"where=lambda p: p[{name!r}] …, or a Float or Int with a step",
        )
    if not isinstance(p, Float | Int):
        raise _refused(
            text,
            f"has {name!r}, which has no number; use a function: where=lambda p: p[{name!r}] …",
        )
    if isinstance(p, Context | Fidelity):
        kind = "Context" if isinstance(p, Context) else "Fidelity"
        raise _refused(
            text,
            f"has {name!r}, which is a {kind} and not tuned; use a function: where=lambda p: …",
        )
    if p.log:
        raise _refused(
            text,
            f"has {name!r}, which is on a log scale, where the limit is not linear; use a "
            "function: where=lambda p: …, or leave log out",
        )


def numeric(p: Parameter) -> Float | Int:
    """A parameter that is known to be a number."""
    assert isinstance(p, Float | Int)
    return p


def exact(value: Any) -> Fraction:
    """The number that the user wrote: 0.1, not 0.1000000000000000055."""
    return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)


def span(p: Float | Int) -> Fraction:
    """How far it is from the first to the last legal value."""
    if p.step is None:
        return exact(p.high) - exact(p.low)
    return exact(p.step) * (p._last or 0)
