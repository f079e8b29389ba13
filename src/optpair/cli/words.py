"""Words for people: where a study stands, and trials to be run."""

from __future__ import annotations

from typing import Any


def status(found: dict[str, Any], observed: bool = True) -> str:
    """Where a study stands; `observed` says whether with its best observed trials."""
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
    lines += [f"failed: trial {row['trial']}: {row['reason']}" for row in found["failures"]]
    lines += [
        f"{row['state']}: trial {row['trial']}, since {row['started']}: {_short(row['params'])}"
        for row in found["out"]
    ]
    return "\n".join(lines)


def _made(found: dict[str, Any]) -> str:
    """How much of what is wanted was done."""
    most = "" if found["evaluations"] is None else f" of {found['evaluations']}"
    done = f"{found['ended']}{most} evaluations"
    from optpair.studies.results import spent_words

    return f"{done}, {spent_words(found)}" if "spent" in found else done


def _observed(found: dict[str, Any]) -> list[str]:
    """The best observed trial, or those on the observed front."""
    best = found["best_observed"]
    if best == [] or (best is None and "outcomes" in found and found["counts"].get("told")):
        return ["best observed none: no trial has all objectives and meets all constraints"]
    rows = best if isinstance(best, list) else [best] if best else []
    from optpair.studies.results import brief  # late: `--help` answers at once

    return [
        f"best observed {brief(row.get('outcomes') or {'value': row.get('value')})} in trial "
        f"{row['trial']}: {_short(row['params'])}"
        for row in rows
    ]


def asked(row: dict[str, Any]) -> str:
    """A trial to be run: its parameters, and what else is known of its row."""
    label = f" ({_listed(row['row'])})" if "row" in row else ""
    return f"{_listed(row['params'])}{label}"


def _short(params: dict[str, Any]) -> str:
    """Parameters to be read, with five digits."""
    shown = {n: f"{v:.5g}" if isinstance(v, float) else repr(v) for n, v in params.items()}
    return ", ".join(f"{name} = {value}" for name, value in shown.items())


def _listed(params: dict[str, Any]) -> str:
    """Parameters to be run, with every digit."""
    return ", ".join(f"{name} = {value!r}" for name, value in params.items())
