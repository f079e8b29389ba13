"""Numbers and sentences as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from optpair.engine.answers import LeftOut
from optpair.report.findings import Findings
from optpair.report.markup import Markup, el
from optpair.report.subject import OUT, Subject

SURELY = 0.99  # a chance of success is never shown as more, nor one of failure
LITTLE, MUCH = 0.02, 0.1  # shares of what was won, below and above which the expected rest is
SMALL = 0.1  # share of what was won that the rest is at most, where little is left;
WIDE = 0.1  # and that half of the recommendation's interval is at most
TEACHES_NOTHING = 0.01  # nats
FEWEST = 8  # values, from which on leaving one out says something
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
    """A quantile of some values."""
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


def likely(chance: float) -> str:
    """A chance of success in whole per cent; a few failures do not make one certain.

    >>> likely(0.0), likely(0.42), likely(1.0)
    ('under 1 %', '42 %', 'over 99 %')
    """
    return (
        f"over {SURELY:.0%}".replace("%", " %") if chance > SURELY else percent(max(chance, 1e-9))
    )


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
    hint = "The answers appear here once a trial has a value."
    failed = sum(row.state == "failed" for row in subject.rows)
    if any(row.state == "told" for row in subject.rows):
        why = "There are values, but none that the model can use."
        hint = "They are from points outside its space."
        if subject.model is None:
            hint = "Only parameters that all completed trials share are modelled: there is none."
    elif failed:
        why = f"{count(failed, 'trial')} failed, and none gave a value: see their reasons."
    elif any(row.state in OUT for row in subject.rows):
        why = "Trials are under way, and none has given a value yet."
    elif subject.rows:
        why = "None of the trials has given a value."
    else:
        why = "No trial has been made yet."
    return Verdict("early", "Nothing to recommend yet.", f"{why} {hint}")


def verdict(subject: Subject, found: Findings) -> Verdict:
    """Weigh what is still to be won against what was won since the first design.

    It says that going on is hardly worth it only if both are small beside what was won: the
    upper end of the gap's 95 % interval, and the interval of the recommendation. If the gap is
    expected to be small, or is at most small, and one of the two is not, the model is not sure.
    """
    assert subject.model is not None
    values, initial = [row.value for row in subject.told], subject.model.initial
    if found.exhausted:
        ahead = f"{number(_won(subject, found), digits=2)} {_better(subject)}"
        noun = subject.model.space.noun
        told = f"Each {noun} is tried once. The recommendation is {ahead} than the first trials."
        return Verdict("done", f"Every {noun} has been tried.", told)
    if len(values) <= initial:
        return Verdict(
            "early",
            "Too early to say.",
            f"{count(len(values), 'value')}: too few to tell signal from noise. It takes at least "
            f"{initial + 1}." + "".join(f" {line}" for line in doubts(found)),
        )
    gap, most, won = found.gap, found.gap_interval[1], _won(subject, found)
    small, narrow = most <= SMALL * won, _width(found) <= WIDE * won
    done = small and narrow and not found.doubted
    reason = _still_to_win(subject, found, won, forecast=not (done or unexplained(found.check)))
    if found.doubted:
        return Verdict("little", "A value is in doubt.", " ".join([*doubts(found), reason]))
    if unexplained(found.check):
        return Verdict("go", "The model cannot predict yet.", reason)
    if done:
        return Verdict("done", "Going on is hardly worth it.", reason)
    if small or gap <= LITTLE * won:
        unsure = reason if narrow else f"{reason} {_why_unsure(found)}"
        return Verdict("go", "The model is not yet sure.", unsure)
    if found.next_gain < TEACHES_NOTHING:
        reason += " At this rate it would take many more trials."
        return Verdict("little", "Something is left, but hard to get.", reason)
    if gap < MUCH * won:
        return Verdict("little", "A little is left to be won.", reason)
    return Verdict("go", "Going on is worth it.", reason)


def unexplained(check: LeftOut | None) -> bool:
    """Whether the other trials predict values no better than their mean does."""
    return check is not None and len(check.y) >= FEWEST and check.explained <= 0


def doubts(found: Findings) -> list[str]:
    """A sentence on each trial whose value looks like a mistake."""
    return [
        f"Trial {row.number}: {number(row.value or 0.0)} is far from the {number(expected)} that "
        "the others predict there; it does not count until a repeat agrees."
        for row, expected in found.doubted
    ]


def _won(subject: Subject, found: Findings) -> float:
    """How much better the recommendation is than the median of the first design, if it is.

    The design fills the space; later trials gather around the optimum, and would be a baseline
    that rises with the search.
    """
    assert subject.model is not None
    middle = float(np.median([row.value for row in subject.told[: subject.model.initial]]))
    return max(2 * subject.sign * (found.recommended.mean / 2 - middle / 2), 0.0)


def _width(found: Findings) -> float:
    """Half of the recommendation's interval."""
    return found.recommended.high / 2 - found.recommended.low / 2


def _better(subject: Subject) -> str:
    return "lower" if subject.objective.direction == "minimize" else "higher"


def _still_to_win(subject: Subject, found: Findings, won: float, *, forecast: bool) -> str:
    gap, most, gain, noise = (
        number(v, digits=2)
        for v in (found.gap, found.gap_interval[1], found.next_gain, found.noise.std)
    )
    better = _better(subject)
    said = f"The optimum is about {gap} {better} than the recommendation, at most {most} (95 %)"
    if found.gap_interval[1] == 0:
        said = "The optimum is not better than the recommendation, as far as the model can see"
    said += f"; the recommendation is {number(won, digits=2)} {better} than the first trials. "
    if forecast and found.halved and found.gap_interval[1] > 0:
        more = count(found.halved, "more trial")
        said += f"About {more} should halve what is expected to be left. "
    said += f"The best next trial would teach {gain} nats about the optimum."
    if 0 < found.gap_interval[1] < found.noise.std:
        said += f" What is left is less than the noise of a single trial (±{noise})."
    return said


def _why_unsure(found: Findings) -> str:
    best, std = found.recommended, found.noise.std
    low, high = (number(end, digits=3) for end in (best.low, best.high))
    noise = f", with a noise of ±{number(std, digits=2)} for a single trial" if std > 0 else ""
    return (
        f"The value at the recommended point may be anywhere from {low} to {high} (95 %){noise}. "
        "More trials will narrow it down; a value that looks wrong is best repeated or corrected "
        "first."
    )
