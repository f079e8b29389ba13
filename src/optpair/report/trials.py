"""The table of trials: what became of each, with its parameters, messages and notes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from optpair.report.findings import Findings
from optpair.report.markup import Markup, el, join
from optpair.report.parts import message, section, table
from optpair.report.subject import OUT, Row
from optpair.report.words import exact, short

NAMED = 3  # failed trials whose reasons stand above the table
LONGEST = 120  # characters of a reason there
NOTHING: Mapping[int, str] = MappingProxyType({})


def trials(
    rows: Sequence[Row],
    names: Sequence[str] = (),
    predicted: Mapping[int, str] = NOTHING,
    found: Findings | None = None,
    *,
    value: str = "value",
    largest_first: Collection[str] = (),
) -> Markup:
    """The table of trials; the parameters that are named come first."""
    if not rows:
        return Markup()
    names = list(dict.fromkeys([*names, *(name for row in rows for name in row.params)]))
    messages = any(row.message for row in rows)
    values = any(row.value is not None for row in rows)
    outcomes = list(dict.fromkeys(name for row in rows for name in row.outcomes))
    said = [value] * values + outcomes + ["predicted"] * (found is not None)
    costs = any(row.cost is not None for row in rows)
    said += ["cost"] * costs
    notes = list(dict.fromkeys(name for row in rows for name in row.notes))
    doubtful = frozenset() if found is None else found.doubtful
    heads = ["trial", "state", *said, *names, *(["message"] if messages else []), *notes]
    body = [
        _row(
            row,
            "in doubt" if row.number in doubtful else row.state,
            [_value(row.value)] * values
            + [_value(row.outcomes.get(name)) for name in outcomes]
            + [predicted.get(row.number, "")] * (found is not None)
            + [_value(row.cost)] * costs,
            names,
            messages,
            notes,
        )
        for row in rows
    ]
    best = None if found is None else found.observed.number
    marked = [
        el("tr", cells, class_=_kind(row, best, doubtful))
        for row, cells in zip(rows, body, strict=True)
    ]
    half = "± is half of the 95 % interval of the value without noise." if predicted else ""
    return section(
        "Trials",
        " ".join(filter(None, [half, failures(rows)])),
        table(heads, marked, sorts=True, largest_first=largest_first),
        class_="trials",
    )


def failures(rows: Sequence[Row]) -> str:
    """Why the last trials failed, in a sentence; empty if none says why."""
    said = [
        f"trial {row.number}: {short(row.message.strip().splitlines()[-1].strip(), LONGEST)}"
        for row in rows
        if row.state == "failed" and row.message.strip()
    ]
    more = f" (and {len(said) - NAMED} before)" if len(said) > NAMED else ""
    return f"Failed: {'; '.join(said[-NAMED:])}{more}." if said else ""


def _kind(row: Row, best: int | None, doubtful: Collection[int]) -> str | None:
    if row.number == best:
        return "best"
    if row.state == "failed" or row.number in doubtful:
        return "bad"
    return "out" if row.state in OUT else None


def _value(value: float | None) -> Markup | str:
    return "" if value is None else exact(value)


def _row(
    row: Row,
    state: str,
    said: list[Markup | str],
    names: list[str],
    messages: bool,
    notes: list[str],
) -> Markup:
    cells = [row.number, state, *said]
    cells += [short(row.params[name], 24) if name in row.params else "" for name in names]
    if messages:
        cells.append(message(row.message))
    cells += [message(row.notes.get(name, "")) for name in notes]
    return join(el("td", cell) for cell in cells)
