"""Texts for people: the progress of a study, and trials to be run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def status(found: dict[str, Any], observed: bool = True) -> str:
    """The progress of a study, with its best observed trials unless `observed` is False."""
    counts = ", ".join(f"{n} {state}" for state, n in found["counts"].items()) or "none yet"
    wanted = found.get("direction") or ", ".join(
        f"{name} {words}" for name, words in found["outcomes"].items()
    )
    lines = [
        f"study {found['study']} in {found['storage']}, {wanted}",
        f"{_made(found)}; trials: {counts}",
    ]
    if found["over"]:
        lines.append(f"over: {found['over']}")
    if found["paused"]:
        lines.append("paused: workers wait until optpair resume")
    if observed:  # a recommendation has it too
        lines += _observed(found)
    lines += [
        f"doubted: {_value(row)} in trial {row['trial']}, {_why()}" for row in found["doubted"]
    ]
    lines += [f"failed: trial {row['trial']}: {row['reason']}" for row in found["failures"]]
    lines += [
        f"{row['state']}: trial {row['trial']}, since {_minute(row['started'])}: "
        f"{_short(row['params'])}"
        for row in found["out"]
    ]
    return "\n".join(lines)


def told(row: dict[str, Any]) -> str:
    """What came of a trial that was told, for whoever has typed it."""
    shown = f", {_value(row)}" if row["state"] == "told" else ""
    doubt = f"; {_why()}" if row.get("doubted") else ""
    return f"trial {row['trial']}: {row['state']}{shown}{doubt}"


def _value(row: dict[str, Any]) -> str:
    from optpair.studies.results import brief  # late: `--help` answers at once

    return brief(row.get("outcomes") or {"value": row.get("value")})


def _why() -> str:
    from optpair.studies.doubts import WHY

    return WHY


def _minute(when: str | None) -> str:
    """A time without its seconds: 2026-11-18 16:19."""
    return "some time" if when is None else when[:16].replace("T", " ")


def _made(found: dict[str, Any]) -> str:
    """How much of what is wanted was done."""
    most, ended = found["evaluations"], found["ended"]
    done = f"{ended} evaluations" if most is None else f"{ended} of {most} evaluations"
    if most is not None and ended > most:
        done = f"{ended} evaluations, of which {most} were wanted"
    from optpair.studies.results import spent_words

    return f"{done}, {spent_words(found)}" if "spent" in found else done


def _observed(found: dict[str, Any]) -> list[str]:
    """The best observed trial, or those on the observed front."""
    best = found["best_observed"]
    if best == [] or (best is None and "outcomes" in found and found["counts"].get("told")):
        return ["best observed: none yet; no trial has all objectives and meets all constraints"]
    rows = best if isinstance(best, list) else [best] if best else []
    return [
        f"best observed {_value(row)} in trial "
        f"{row['trial']}: {_short({**row['params'], **row['actual']})}"
        for row in rows
    ]


def asked(row: dict[str, Any], space: Mapping[str, Any]) -> str:
    """A trial to be run: its parameters, and what else is known of its row."""
    params = {n: _to_run(value, space[n]) for n, value in row["params"].items()}
    label = f" ({_listed({n: repr(v) for n, v in row['row'].items()})})" if "row" in row else ""
    return f"{_listed(params)}{label}"


def _to_run(value: Any, distribution: Any) -> str:
    """A value for people to set: of a range without steps, to a hundred-thousandth of it."""
    if not isinstance(value, float) or getattr(distribution, "step", 0) is not None:
        return repr(value)  # steps, or a category that is a number
    if distribution.log or distribution.low == distribution.high:
        return f"{value:.5g}"
    decimals = 5 - math.floor(math.log10(distribution.high - distribution.low))
    return repr(round(value, decimals))


def _short(params: Mapping[str, Any]) -> str:
    """Parameters to be read, with five digits."""
    return _listed({n: f"{v:.5g}" if isinstance(v, float) else repr(v) for n, v in params.items()})


def _listed(shown: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in shown.items())
