"""Sentences on several outcomes: what is wanted, how likely it is, and whether to go on."""

from __future__ import annotations

import math

import numpy as np

from optpair.engine.worth import HOPELESS
from optpair.problem.outcomes import Objective
from optpair.problem.problem import Problem
from optpair.report.outcomes import Belief, JointFindings, JointSubject
from optpair.report.subject import OUT, Row
from optpair.report.words import LITTLE, MUCH, SMALL, TEACHES_NOTHING, WIDE, Verdict, count, number

LARGEST = 1e300  # a hypervolume beyond may have been cut off
IMPOSSIBLE = 0.05  # the probability of a feasible point below which there is probably none
VERBS = {"minimize": "minimise", "maximize": "maximise"}


def wanted(problem: Problem, name: str) -> str:
    """What is wanted of an outcome: maximise, or at most 20."""
    outcome = problem.outcomes[name]
    return VERBS[outcome.direction] if isinstance(outcome, Objective) else str(outcome)


def wish(problem: Problem) -> str:
    """What is wanted of all: maximise accuracy, keep latency at most 20."""
    goals = [f"{VERBS[o.direction]} {name}" for name, o in problem.objectives.items()]
    return ", ".join(goals + [f"keep {name} {o}" for name, o in problem.constraints.items()])


def probability(chance: float) -> str:
    """A probability, rounded down: what is below 95 % never looks like it.

    >>> probability(0.9496), probability(1.0), probability(0.0002)
    ('94.9 %', '100 %', 'under 0.1 %')
    """
    tenths = math.floor(1000 * chance + 1e-9)
    return f"{tenths / 10:g} %" if tenths or chance <= 0 else "under 0.1 %"


def unlikely(chance: float) -> str:
    """What the answer is if no point is likely to meet all limits."""
    return "the likeliest" if chance >= HOPELESS else "predicted to come closest"


def interval(belief: Belief) -> str:
    """The ends of an interval, with as many digits as it is wide."""
    low, high = (number(end, belief.half / 2 or None) for end in (belief.low, belief.high))
    return f"{low} to {high}"


def mean(belief: Belief) -> str:
    """The mean, with as many digits as its interval allows."""
    return number(belief.mean, belief.half / 2 or None)


def standing(subject: JointSubject, row: Row, best: frozenset[int]) -> str:
    """What a trial's values are worth, in a word or two."""
    if row.state != "told":
        return ""
    broken, missing = subject.broken(row), subject.missing(row)
    if broken:
        return f"breaks {', '.join(broken)}"
    if row.number in best and subject.feasible(row):
        return "best" if subject.problem.goal == "feasible" else "on the front"
    if missing:
        return f"without {', '.join(missing)}"
    return "feasible" if subject.problem.constraints else "beaten"


def nothing(subject: JointSubject) -> Verdict:
    """Why a search has no answer."""
    rows, failed = subject.rows, sum(row.state == "failed" for row in subject.rows)
    never = [n for n in subject.problem.objectives if not any(n in r.outcomes for r in rows)]
    if subject.told:
        why = f"No trial has a value of {never[0]} yet, which is an objective."
    elif failed:
        why = f"{count(failed, 'trial')} failed, and none gave a value: see their reasons."
    elif any(row.state in OUT for row in rows):
        why = "Trials are under way, and none has given a value yet."
    else:
        why = "No trial has given a value yet."
    return Verdict("early", "Nothing to recommend yet.", why)


def verdict(subject: JointSubject, found: JointFindings) -> Verdict:
    """Whether the limits can be met and, where they are, whether going on is worth it."""
    said = _verdict(subject, found)
    if not found.doubted:
        return said
    unlikely = [] if found.sure else [said.headline]
    reason = " ".join([*doubts(found), *unlikely, said.reason])
    return Verdict("little", "A value is in doubt.", reason)


def _verdict(subject: JointSubject, found: JointFindings) -> Verdict:
    told, initial = len(subject.told), subject.model.initial
    if told <= initial:
        return Verdict(
            "early",
            "Too early to say.",
            f"{count(told, 'trial')}: too few to tell signal from noise. It takes at least "
            f"{initial + 1}.",
        )
    if not found.sure:
        return _unlikely(subject, found)
    if found.volume is None:
        return _one(subject, found)
    size, gap = found.volume.size, found.volume.gap
    if not 0 < size.mean < LARGEST:
        why = "The hypervolume is too large or too small to say how much is still to be won."
        return Verdict("go", "Judge by the front itself.", why)
    share = [_share(part, size.mean) for part in (gap.mean, gap.high)]
    reason = f"About {share[0]} more hypervolume is still to be won, at most {share[1]} (95 %)."
    if gap.high == 0:
        reason = "No more hypervolume is to be won, as far as the model can see."
    return _weighed(found, gap, size.half, size.mean, reason)


def doubts(found: JointFindings) -> list[str]:
    """A sentence on each trial whose value looks like a mistake."""
    return [
        f"Trial {row.number}: {name} {number(row.outcomes[name])} is far from the "
        f"{number(expected)} that the others predict there; it does not count until a repeat "
        "agrees."
        for row, name, expected in found.doubted
    ]


def _unlikely(subject: JointSubject, found: JointFindings) -> Verdict:
    chance = found.points[0].chance or 0.0
    reason = (
        f"The recommended point is {unlikely(chance)}: its probability is {probability(chance)}."
    )
    headline, level = "No point is likely to meet all limits yet.", "go"
    limits = subject.problem.constraints
    never = [n for n in limits if not any(n in row.outcomes for row in subject.told)]
    if never:
        return Verdict(level, headline, f"No trial has a value of {never[0]} yet.")
    if found.possible is not None:
        possible = max(found.possible, chance)  # no sample is as sure as a chance at a point
        if possible < IMPOSSIBLE:
            level, reason = (
                "little",
                f"{reason} Probably no point does: relax a limit, or widen the space.",
            )
        else:
            reason += f" The probability that there is such a point is {probability(possible)}."
    return Verdict(level, headline, reason)


def _one(subject: JointSubject, found: JointFindings) -> Verdict:
    """Of one objective under constraints, beside how far the first trials were apart."""
    ((name, gap),) = found.gap.items()
    values = [row.outcomes[name] for row in subject.told if name in row.outcomes]
    low, high = np.quantile(np.array(values[: subject.model.initial]) / 2, [0.1, 0.9])
    better = "lower" if subject.problem.objective.direction == "minimize" else "higher"
    mean, most, gain = (number(v, digits=2) for v in (gap.mean, gap.high, found.next_gain))
    said = (
        f"Within the limits, the best {name} is about {mean} {better} than the recommendation's, "
        f"at most {most} (95 %)"
    )
    if gap.high == 0:
        said = f"Within the limits, no better {name} is to be had, as far as the model can see"
    reason = (
        f"{said}; the first trials were about {number(2 * (high - low), digits=2)} apart. "
        f"The best next trial would teach {gain} nats about the optimum."
    )
    return _weighed(found, gap, found.best.outcomes[name].half, float(high - low), reason)


def _weighed(found: JointFindings, gap: Belief, half: float, scale: float, reason: str) -> Verdict:
    """What is still to be won beside a scale, as on the page of one objective."""
    small, narrow = gap.high <= SMALL * scale, half <= WIDE * scale
    if small and narrow:
        return Verdict("done", "Going on is hardly worth it.", reason)
    if small or gap.mean <= LITTLE * scale:
        return Verdict("go", "The model is not yet sure.", reason)
    if found.next_gain < TEACHES_NOTHING:
        reason += " At this rate it would take many more trials."
        return Verdict("little", "Something is left, but hard to get.", reason)
    if gap.mean < MUCH * scale:
        return Verdict("little", "A little is left to be won.", reason)
    return Verdict("go", "Going on is worth it.", reason)


def _share(part: float, whole: float) -> str:
    share = 100 * (part / whole)
    return (
        "under 0.1 %" if 0 < share < 0.1 else f"{share:.2g} %" if share < 99 else f"{share:.0f} %"
    )
