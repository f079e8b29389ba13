"""Sections on how good the model is: warnings, interactions, leave-one-out, chance of success."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from optpair.engine.answers import LeftOut
from optpair.engine.earlier import Lending
from optpair.report import axes, charts, health
from optpair.report.contour import better, contour, likely
from optpair.report.findings import Succeeds
from optpair.report.markup import Markup, el, join
from optpair.report.parts import figure, legend, section, table
from optpair.report.plane import Plane
from optpair.report.subject import Modelled, Row
from optpair.report.words import FEWEST, count, percent
from optpair.trials.estimate import Estimate

VARIES = 0.05  # by how much the chance of success changes along a parameter that is shown
MOST_SHOWN = 6  # parameters
LIMITED = ", or as near to that as the limits allow"


def everywhere(model: Modelled) -> str:
    """What shares of a variance are over."""
    return "the whole space" if model.limits is None else "all ranges, whatever the limits"


def warnings(said: Sequence[str]) -> Markup:
    """What looks wrong, if anything does."""
    if not said:
        return Markup()
    return el("section", *(el("p", line) for line in said), class_="card health", id="health")


def together(
    plane: Plane | None,
    best: Mapping[str, Any],
    observed: Sequence[Row],
    told: Sequence[Row],
    scales: Mapping[str, axes.Axis],
    sign: float,
    what: str = "the predicted value",
    broken: Collection[int] = (),
) -> Markup:
    """The plane of the two parameters that interact most."""
    if plane is None:
        return Markup()
    key = legend(
        ("q4-key", f"{what}, better is stronger"),
        ("recommended-key", "recommended"),
        ("star-key", "best observed"),
        ("trial-key", "trials"),
        *([("cross-key", "trials that break a limit")] if broken else []),
    )
    level = better(sign * plane.mean)
    drawn = contour(plane, level, best, observed, told, scales, broken=broken)
    x, y = plane.names
    among = " of those that decide on no others" if plane.some_decide else ""
    near = LIMITED if np.isnan(plane.mean).any() else ""
    return section(
        f"{x} and {y} together",
        f"{what[0].upper()}{what[1:]} over the two parameters that interact most{among}, with the "
        f"others as recommended{near}. Their interaction, which neither explains alone, makes up "
        f"{percent(plane.share)} of the variance here.",
        el("figure", drawn, key, class_="plane"),
        class_="together",
    )


def feasible(
    plane: Plane | None,
    best: Mapping[str, Any],
    observed: Sequence[Row],
    told: Sequence[Row],
    scales: Mapping[str, axes.Axis],
    broken: Collection[int],
) -> Markup:
    """Where limits are likely met, over the two parameters that matter most to them."""
    if plane is None:
        return Markup()
    key = legend(
        ("q4-key", "probability, strongest from 95 %"),
        ("recommended-key", "recommended"),
        ("star-key", "best observed"),
        ("trial-key", "trials"),
        *([("cross-key", "trials that break a limit")] if broken else []),
    )
    x, y = plane.names
    what = "The probability to meet all limits"
    drawn = contour(
        plane, likely(plane.mean), best, observed, told, scales, what=what, broken=broken
    )
    return section(
        "Where the limits are met",
        f"The probability that all limits are met, over {x} and {y}, which matter most to them, "
        "with the others as recommended.",
        el("figure", drawn, key, class_="plane"),
        class_="feasible",
    )


def borrowed(lent: Mapping[str, Mapping[str, Lending]]) -> Markup:
    """How much each earlier study contributes, if there are any."""
    several = len(lent) > 1
    rows = [
        el(
            "tr",
            el("td", f"{study} ({outcome})" if several else study),
            el("td", percent(own.explains)),
            el("td", percent(own.alike)),
            el("td", str(own.used) if own.used == own.rows else f"{own.used} of {own.rows}"),
        )
        for outcome, studies in lent.items()
        for study, own in sorted(studies.items(), key=lambda item: -item[1].explains)
    ]
    if not rows:
        return Markup()
    return section(
        "Borrowed from earlier studies",
        "Explains: the share of the variance at this study's trials that the earlier trials "
        "explain alone. Alike: the share of the earlier study's variance that this one has in "
        "common with it, as far as that is known.",
        table(["study", "explains", "alike", "trials used"], rows),
        class_="borrowed",
    )


def predicts(
    checks: Mapping[str, tuple[LeftOut, Sequence[Row]]], doubtful: Mapping[str, Collection[int]]
) -> Markup:
    """Each value beside what the others predict, by the name of the outcome.

    The rows are those that the check's trials are numbers of. Doubtful values are left out.
    """
    shown = {}
    for name, (whole, rows) in checks.items():
        numbers = np.array([rows[t].number for t in whole.trial], dtype=int)
        believed = ~np.isin(numbers, list(doubtful.get(name, ())))
        check = whole._replace(
            trial=whole.trial[believed],
            y=whole.y[believed],
            predicted=Estimate(*(part[believed] for part in whole.predicted)),
        )
        if FEWEST <= len(check.y) <= charts.MOST_TITLED:
            shown[name] = check, numbers[believed].tolist()
    if not shown:
        return Markup()
    drawn = [
        el(
            "figure",
            *([el("figcaption", name)] if name else []),
            charts.left_out(check, numbers),
            el("p", _predicted(check), class_="note"),
        )
        for name, (check, numbers) in shown.items()
    ]
    return section(
        "Can the model predict?",
        "Each value beside what all the others predict (leave-one-out, with today's "
        "hyperparameters).",
        legend(("predicted-key", "predicted, 95 %"), ("failed-key", "outside")),
        el("div", *drawn, class_="grid"),
        class_="predicts",
    )


def _predicted(check: LeftOut) -> str:
    within, share = int(health.inside(check).sum()), percent(max(check.explained, 0.0))
    trials = len(np.unique(check.trial))
    several = f" of {count(trials, 'trial')}" if trials < len(check.y) else ""
    return (
        f"{within} of {len(check.y)} values{several} are in their 95 % interval; the predictions "
        f"explain {share} of the variance."
    )


def succeeds(
    along: Mapping[str, Succeeds], rows: Sequence[Row], scales: Mapping[str, axes.Axis]
) -> Markup:
    """The chance of success along the parameters that it depends on, where trials failed."""
    spread = {name: float(np.ptp(own.chance)) for name, own in along.items()}
    shown = sorted((n for n in spread if spread[n] >= VARIES), key=lambda n: -spread[n])
    if not shown:
        return Markup()
    failed = sum(row.state == "failed" for row in rows)
    drawn = [
        figure(name, charts.chance(name, along[name], rows, scales[name]))
        for name in shown[:MOST_SHOWN]
    ]
    return section(
        "Where trials succeed",
        "The chance of success along each parameter that it depends on, with the others as "
        f"recommended: a guess from {count(failed, 'failure')}. The further a trial is from that, "
        "the fainter it is.",
        legend(("predicted-line-key", "chance"), ("trial-key", "told"), ("failed-key", "failed")),
        el("div", *drawn, class_="grid"),
        class_="success",
    )


def interact(pairs: Mapping[tuple[str, str], float]) -> Markup:
    """What two parameters explain together and neither alone."""
    if not pairs:
        return Markup()
    said = [
        join([f"{first} × {second}", " ", el("data", percent(share), value=repr(share))])
        for (first, second), share in pairs.items()
    ]
    items = (el("li", line) for line in said)
    return join([el("h3", "what only two together explain"), el("ul", *items, class_="pairs")])
