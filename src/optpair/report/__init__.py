"""A page about a search: `write(subject, path)`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from optpair.persistence import files
from optpair.report.findings import Findings, gather
from optpair.report.page import render
from optpair.report.subject import Model, Row, Subject, left_out
from optpair.report.words import Verdict, nothing, verdict

__all__ = ["Model", "Row", "Subject", "left_out", "write"]


def write(subject: Subject, path: str | Path) -> dict[str, Any]:
    """Write the page, in one atomic step, and say what stands on it, as JSON."""
    files.check_place(path)
    found = gather(subject)
    files.write(path, render(subject, found, datetime.now()))
    return {"path": str(path), **_summary(subject, found)}


def _summary(subject: Subject, found: Findings | None) -> dict[str, Any]:
    if found is None:
        return {"recommendation": None, "verdict": _said(nothing(subject))}
    best = found.recommended
    return {
        "recommendation": {
            "params": dict(best.params),
            "mean": best.mean,
            "interval": [best.low, best.high],
        },
        "best_observed": {
            "trial": found.observed.number,
            "value": found.observed.value,
            "params": dict(found.observed.params),
        },
        "left_out": dict(subject.left_out),
        "gap": found.gap,
        "gap_interval": list(found.gap_interval),
        "next_gain": found.next_gain,
        "noise_std": found.noise.std,
        "noise_share": found.noise.share,
        "matters": {name: float(share) for name, share in found.total.items()},
        "verdict": _said(verdict(subject, found)),
    }


def _said(verdict: Verdict) -> str:
    return f"{verdict.headline} {verdict.reason}"
