"""A page about a search: `write(subject, path)`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from optpair.persistence import files
from optpair.report import outcomes, outcomes_page
from optpair.report.findings import Findings, gather
from optpair.report.outcome_words import nothing as nothing_joint
from optpair.report.outcome_words import verdict as joint_verdict
from optpair.report.outcomes import Belief, JointFindings, JointSubject
from optpair.report.page import render
from optpair.report.rows import joint_rows_of, rows_of
from optpair.report.subject import Modelled, Row, Subject, left_out
from optpair.report.words import Verdict, nothing, verdict

__all__ = [
    "JointSubject",
    "Modelled",
    "Row",
    "Subject",
    "joint_rows_of",
    "left_out",
    "rows_of",
    "write",
]


def write(subject: Subject | JointSubject, path: str | Path) -> dict[str, Any]:
    """Write the page, in one atomic step, and return what it says, as JSON."""
    files.check_place(path)
    if isinstance(subject, JointSubject):
        return _write_joint(subject, path)
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
            "trial": best.trial,
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


def _write_joint(subject: JointSubject, path: str | Path) -> dict[str, Any]:
    """The page of several outcomes."""
    found = outcomes.gather(subject)
    files.write(path, outcomes_page.render(subject, found, datetime.now()))
    if found is None:
        return {"path": str(path), **_empty(subject), "verdict": _said(nothing_joint(subject))}
    return {"path": str(path), **_joint_summary(subject, found)}


def _empty(subject: JointSubject) -> dict[str, Any]:
    return {"front" if subject.problem.goal == "front" else "recommendation": None}


def _joint_summary(subject: JointSubject, found: JointFindings) -> dict[str, Any]:
    points = [
        {
            "params": dict(point.params),
            "outcomes": {name: _believed(own) for name, own in point.outcomes.items()},
            "chance": point.chance,
            "trial": point.trial,
        }
        for point in found.points
    ]
    answer: dict[str, Any] = {"recommendation": points[0], "possible": found.possible}
    if found.volume is not None:
        answer = {
            "front": points,
            "hypervolume": _believed(found.volume.size),
            "hypervolume_gap": _believed(found.volume.gap),
            "reference": dict(found.volume.reference),
        }
    return answer | {
        "best_observed": [
            {"trial": row.number, "outcomes": dict(row.outcomes), "params": dict(row.params)}
            for row in found.observed
        ],
        "gap": {name: _believed(own) for name, own in found.gap.items()},
        "next_gain": found.next_gain,
        "matters": {name: dict(total) for name, (_, total) in found.matters.items()},
        "verdict": _said(joint_verdict(subject, found)),
    }


def _believed(belief: Belief) -> dict[str, Any]:
    return {"mean": belief.mean, "interval": [float(belief.low), float(belief.high)]}


def _said(verdict: Verdict) -> str:
    return f"{verdict.headline} {verdict.reason}"
