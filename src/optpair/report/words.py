"""Numbers and sentences as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from optpair.report.findings import Findings
from optpair.report.markup import Markup, el
from optpair.report.subject import OUT, Subject

LITTLE, MUCH = 0.02, 0.1  # shares of what was won, below and above which the rest is
WIDE = 0.1  # of the way from the median value to the best: half an interval that says little
TEACHES_NOTHING = 0.01  # nats
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, resolution: float | None = None, digits: int = 4) -> str:
    """A number with some digits, or with two at its resolution.

    >>> number(0.318147), number(0.318147, 0.05), number(-1234567.0), number(3)
    ('0.3181', '0.318', '−1.235e6', '3')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "not a number"
    size = abs(value)
    if size and not 1e-4 <= size < 1e6 and not (resolution and size < resolution):
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        shown = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    elif resolution and 1e-12 < resolution < 1e6:
        shown = f"{value:.{max(0, 1 - math.floor(math.log10(resolution)))}f}"
    elif size >= 10 ** (digits - 1):
        shown = f"{value:.0f}"
    else:
        shown = f"{value:.{digits}g}"
    if shown.startswith("-") and float(shown) == 0:
        shown = shown[1:]
    return shown.replace("-", "−")


def exact(value: float, resolution: float | None = None, digits: int = 4) -> Markup:
    """A number as people read it, with all its digits for machines."""
    return el("data", number(value, resolution, digits), value=repr(float(value)))


def brief(values: Sequence[float] | np.ndarray, share: float) -> str:
    """The value below which a share of some values is."""
    return number(float(np.quantile(values, share, method="nearest")), digits=3)


def power(exponent: int) -> str:
    """A power of ten."""
    if -3 <= exponent <= 4:
        return f"{10.0**exponent:g}"
    return "10" + str(exponent).translate(_SUPERSCRIPT)


def short(value: object, most: int = 14) -> str:
    """A value of a parameter in a few characters: of long text, its two ends.

    >>> short("category number 7")
    'categor…mber 7'
    """
    if isinstance(value, float):
        return number(value)
    shown, tail = str(value), most // 2 - 1
    return shown if len(shown) <= most else f"{shown[: most - 1 - tail]}…{shown[-tail:]}"


def percent(share: float) -> str:
    """A share in whole per cent."""
    if 0 < share < 0.01:
        return "under 1 %"
    return f"{100 * share:.0f} %"


def count(items: int, noun: str) -> str:
    """3 trials, 1 trial."""
    return f"{items} {noun}{'' if items == 1 else 's'}"


class Verdict(NamedTuple):
    """Whether going on is worth it: a level for the page's colours, a headline, and why."""

    level: str  # "early", "go", "little" or "done"
    headline: str
    reason: str


def nothing(subject: Subject) -> Verdict:
    """Why a search has no answer."""
    hint = "What can be said of the optimum stands here once a trial has a value."
    failed = sum(row.state == "failed" for row in subject.rows)
    if any(row.state == "told" for row in subject.rows):
        why = "There are values, but none that the model can use."
        hint = "They are of places outside its space."
        if subject.model is None:
            hint = "Only parameters that all completed trials share are modelled: there is none."
    elif failed:
        why = f"{count(failed, 'trial')} failed, and none gave a value: see their messages below."
    elif any(row.state in OUT for row in subject.rows):
        why = "Trials are out, and none has given a value yet."
    elif subject.rows:
        why = "None of the trials has given a value."
    else:
        why = "No trial has been made yet."
    return Verdict("early", "Nothing to recommend yet.", f"{why} {hint}")


def verdict(subject: Subject, found: Findings) -> Verdict:
    """Weigh what is still to be won against what was won over the median trial.

    That little is left is said only where the interval of the recommendation is narrow.
    """
    assert subject.model is not None
    values, initial = [row.value for row in subject.told], subject.model.initial
    if len(values) <= initial:
        return Verdict(
            "early",
            "Too early to say.",
            f"{count(len(values), 'value')} cannot tell signal from noise yet; the model is used "
            f"from {initial} on.",
        )
    gap, gain, noise = (number(v, digits=2) for v in (found.gap, found.next_gain, found.noise.std))
    won = abs(float(np.median(np.array(values, dtype=float))) - found.recommended.mean)
    share = 0.0 if found.gap == 0 else found.gap / won if won > 0 else math.inf
    better = "lower" if subject.objective.direction == "minimize" else "higher"
    if found.gap == 0:
        reason = "The optimum is not expected to be better than the recommendation"
    else:
        reason = f"The optimum is expected to be {gap} {better} than the recommendation"
    if 0 < share < 1:
        reason += f", {percent(share)} of what the search has won over its median trial"
    reason += f"; the best next trial would teach {gain} nats about it."
    if 0 < found.gap < found.noise.std and gap != noise:
        reason += f" That is less than the noise of a single trial (±{noise})."
    if share < LITTLE:
        if _unsure(subject, found):
            return Verdict("go", "The model is not yet sure.", _why_unsure(found))
        return Verdict("done", "Going on is hardly worth it.", reason)
    if found.next_gain < TEACHES_NOTHING:
        reason += " At this rate it would take many more trials."
        return Verdict("little", "Something is left, but hard to get.", reason)
    if share < MUCH:
        return Verdict("little", "A little is left to be won.", reason)
    return Verdict("go", "Going on is worth it.", reason)


def _unsure(subject: Subject, found: Findings) -> bool:
    """Whether the recommendation's interval is too wide to say that little is left.

    Half of it is then more than a tenth of the way from the median value to the best; and more
    than the noise, unless the optimum seems to be no better at all.
    """
    values = np.array([row.value for row in subject.told], dtype=float)
    best = np.min(values) if subject.objective.direction == "minimize" else np.max(values)
    spread = abs(float(best / 2 - np.median(values) / 2)) * 2  # halves cannot overflow
    half = found.recommended.high / 2 - found.recommended.low / 2
    return 0 < WIDE * spread < half and (half > found.noise.std or found.gap == 0)


def _why_unsure(found: Findings) -> str:
    best, noise = found.recommended, number(found.noise.std, digits=2)
    low, high = (number(end, digits=3) for end in (best.low, best.high))
    return (
        f"The value at the recommended point may be anywhere from {low} to {high} (95 % interval), "
        f"with a noise of ±{noise} for a single trial. More trials will narrow it down; a value "
        "that looks wrong is best repeated or corrected first."
    )
