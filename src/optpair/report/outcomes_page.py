"""The page of several outcomes: limits that must hold, and goals that pull against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from itertools import combinations
from typing import Any

import numpy as np

from optpair.engine.worth import HOPELESS
from optpair.report import axes, charts, diagnostics, front, health, parallel
from optpair.report.findings import Answer
from optpair.report.markup import Markup, el, join
from optpair.report.outcome_words import (
    interval,
    mean,
    nothing,
    probability,
    standing,
    unlikely,
    verdict,
    wanted,
    wish,
)
from optpair.report.outcomes import Belief, JointFindings, JointSubject, Point
from optpair.report.page import footer, whole
from optpair.report.parts import (
    as_json,
    conclusion,
    figure,
    from_trial,
    header,
    legend,
    message,
    parameters,
    section,
    table,
)
from optpair.report.subject import OUT, Row
from optpair.report.timeline import timeline
from optpair.report.trials import failures
from optpair.report.words import count, exact, number, short

MOST_OBJECTIVES = 4  # of which every pair has a chart


def render(subject: JointSubject, found: JointFindings | None, made: datetime) -> str:
    """The whole page."""
    states = Counter(row.state for row in subject.rows)
    counts = ", ".join(f"{n} {state}" for state, n in states.most_common()) or "none yet"
    facts = [
        wish(subject.problem),
        f"{count(len(subject.rows), 'trial')}: {counts}",
        count(len(subject.model.space), "parameter"),
        made.strftime("%Y-%m-%d %H:%M"),
    ]
    main = el("main", content(subject, found))
    return whole(subject.name, header(subject.name, facts), main, footer(None))


def content(subject: JointSubject, found: JointFindings | None) -> Markup:
    """What was found, and the trials."""
    body = conclusion(nothing(subject)) if found is None else _answers(subject, found)
    return join([body, timeline(subject.rows), _trials(subject, found)])


def _answers(subject: JointSubject, found: JointFindings) -> Markup:
    several = subject.problem.goal == "front"
    scales = axes.of_model(subject.model)
    broken = {row.number for row in subject.told if subject.broken(row)}
    places = (found.best.params, found.observed, subject.told, scales)
    return join(
        [
            conclusion(verdict(subject, found)),
            diagnostics.warnings(health.joint_notes(subject, found)),
            join([_front(subject, found), _compromises(subject, found)])
            if several
            else _hero(subject, found),
            _tiles(found),
            *(_slices(subject, found, name, scales) for name in subject.problem.names),
            diagnostics.feasible(found.feasible, *places, broken),
            *(
                diagnostics.together(
                    *(plane, *places, subject.problem.objectives[name].sign),
                    *(f"predicted {name}", broken),
                )
                for name, plane in found.planes.items()
            ),
            _matters(found, diagnostics.everywhere(subject.model)),
            diagnostics.succeeds(found.succeeds, subject.rows, scales),
            diagnostics.borrowed(found.borrowed),
            _glance(subject, found, scales),
            diagnostics.predicts(
                {n: (c, subject.told) for n, c in found.checks.items()},
                {
                    n: [row.number for row, own, _ in found.doubted if own == n]
                    for n in found.checks
                },
            ),
        ]
    )


def _glance(subject: JointSubject, found: JointFindings, scales: Mapping[str, axes.Axis]) -> Markup:
    """Every trial through its parameters to its outcomes; those that break a limit are faint."""
    told, problem = subject.told, subject.problem
    total: dict[str, float] = {}
    for _, own in found.matters.values():
        total = {name: max(share, total.get(name, 0.0)) for name, share in own.items()}
    columns = parallel.columns_of(told, scales, total)
    for name, outcome in problem.outcomes.items():
        values = [row.outcomes.get(name) for row in told]
        seen = [value for value in values if value is not None]
        if seen:
            axis = front.outcome_axis(seen, [], front.limits_of(outcome))
            columns.append(parallel.Column(name, axis, values))
    if problem.goal == "feasible":
        (name,) = problem.objectives
        sign, lowest = problem.objective.sign, -np.inf
        worth = [sign * r.outcomes[name] if name in r.outcomes else lowest for r in told]
        level = parallel.levels(np.array(worth))
    else:
        best = {row.number for row in found.observed}
        level = np.array([parallel.LEVELS - 1 if row.number in best else 2 for row in told])
    level = np.where([bool(subject.broken(row)) for row in told], 0, level)
    titles = [
        f"trial {r.number}: {', '.join(f'{n} {number(v)}' for n, v in r.outcomes.items())}"
        for r in told
    ]
    return parallel.all_trials(told, columns, level, titles)


def _hero(subject: JointSubject, found: JointFindings) -> Markup:
    best, (seen,), (name,) = found.best, found.observed, subject.problem.objectives
    worth, chance = best.outcomes[name], best.chance or 0.0
    met, hopeless = subject.feasible(seen), chance < HOPELESS
    heading = "Predicted to come closest" if hopeless else "Likeliest to meet the limits"
    values = [f"{n} {number(v)}" for n, v in seen.outcomes.items() if n != name]
    return el(
        "section",
        el(
            "article",
            el("h2", "Recommended" if found.sure else heading),
            el("p", _number(worth), class_="big"),
            el("p", f"{name}, predicted, without the noise; 95 % interval {interval(worth)}"),
            *from_trial(best.trial),
            parameters(best.params),
            as_json(best.params),
            class_="card recommended-card",
            id="recommended",
        ),
        el(
            "article",
            el("h2", "Best observed" if met else "Closest to the limits"),
            el("p", exact(seen.outcomes[name]) if name in seen.outcomes else "–", class_="big"),
            el("p", f"{name} in trial {seen.number}, with {', '.join(values) or 'nothing else'}"),
            parameters(seen.params),
            class_="card observed-card",
            id="observed",
        ),
        el(
            "article",
            el("h2", "Beside the limits"),
            el("p", exact_chance(chance), class_="big"),
            el("p", "is the probability that the recommended point meets all limits"),
            front.beside_limits(subject, found),
            legend(
                ("predicted-key", "predicted, 95 %"),
                ("star-key", f"trial {seen.number}"),
                ("limit-key", "limit"),
            ),
            class_="card wide",
            id="limits",
        ),
        class_="hero",
    )


def exact_chance(chance: float) -> Markup:
    """A probability as people read it, with all its digits for machines."""
    return el("data", probability(chance), value=repr(float(chance)))


def _number(belief: Belief) -> Markup:
    return el("data", mean(belief), value=repr(float(belief.mean)))


def _front(subject: JointSubject, found: JointFindings) -> Markup:
    assert found.volume is not None
    names, volume = list(subject.problem.objectives), found.volume
    pairs = list(combinations(names, 2)) if len(names) <= MOST_OBJECTIVES else []
    if len(names) == 2:
        drawn = front.front(subject, found, *names, wide=True)
    else:
        charts_ = [figure("", front.front(subject, found, *two, wide=False)) for two in pairs]
        drawn = el("div", *charts_, class_="grid")
    bad = any(subject.broken(row) for row in subject.told)
    marks = legend(
        ("recommended-key", "predicted compromises, 95 % intervals"),
        ("star-key", "observed front"),
        ("possible-key", "fronts that are still possible"),
        ("trial-key", "trials"),
        *([("cross-key", "trials that break a limit")] if bad else []),
    )
    low, high = number(volume.size.low), number(volume.size.high)
    above = ", ".join(f"{name} = {number(end)}" for name, end in volume.reference.items())
    size = el(
        "p",
        "The front's hypervolume is ",
        exact(volume.size.mean),
        f", 95 % interval {low} to {high}, measured from {above}.",
        id="volume",
    )
    note = (
        "No point is predicted to beat one of these in every objective. With noise, part of the "
        "observed front is luck. Trials off the scale are drawn at the edge."
    )
    if not found.sure:
        best = unlikely(found.points[0].chance or 0.0)
        note = f"No point is likely to meet all limits yet: this one is {best}."
    return section("The best compromises", note, drawn, marks, size, class_="front")


def _compromises(subject: JointSubject, found: JointFindings) -> Markup:
    problem, params = subject.problem, list(subject.model.space)
    limits = ["limits met"] if problem.constraints else []
    heads = ["", *(f"{name} ({wanted(problem, name)})" for name in problem.names), *limits, *params]
    rows = [
        el("tr", el("td", i + 1), *_compromise(problem.names, point), *_cells(point.params, params))
        for i, point in enumerate(found.points)
    ]

    return section(
        "To choose from",
        "Predicted, without the noise, ± half of the 95 % interval; numbered as in the chart."
        if len(problem.objectives) == 2
        else "Predicted, without the noise, ± half of the 95 % interval.",
        table(heads, rows),
        class_="compromises",
    )


def _compromise(names: tuple[str, ...], point: Point) -> list[Markup]:
    cells = [
        el("td", _number(own), f" ± {number(own.half, digits=2)}", title=interval(own))
        for own in (point.outcomes[name] for name in names)
    ]
    return cells if point.chance is None else [*cells, el("td", exact_chance(point.chance))]


def _cells(params: Mapping[str, Any], names: list[str]) -> list[Markup]:
    return [el("td", short(params[n], 24) if n in params else "") for n in names]


def _tiles(found: JointFindings) -> Markup:
    """What is still to be won, once there is a point that likely meets the limits."""
    if not found.sure:
        return Markup()
    tiles = [
        (f"still to be won in {short(name, 24)}", gap, "at most {} (95 %)")
        for name, gap in found.gap.items()
    ]
    if found.volume is None:
        gain = Belief(found.next_gain, 0.0, 0.0)
        tiles.append(("the next trial teaches", gain, "nats about the optimum"))
    else:
        tiles.append(("still to be won in hypervolume", found.volume.gap, "at most {} (95 %)"))
    shown = [
        (label, exact(value.mean, digits=2), unit.format(number(value.high, digits=2)))
        for label, value, unit in tiles
    ]
    if found.success is not None:
        shown.append(("chance of success", exact_chance(found.success), "of a trial there"))
    return el(
        "section",
        *(
            el("div", el("h3", label), el("p", value, class_="big"), el("p", unit))
            for label, value, unit in shown
        ),
        class_="tiles",
    )


def _slices(
    subject: JointSubject, found: JointFindings, name: str, scales: Mapping[str, axes.Axis]
) -> Markup:
    """One outcome along every parameter."""
    problem, belief = subject.problem, found.best.outcomes[name]
    limits = front.limits_of(problem.outcomes[name])
    told = [replace(r, value=r.outcomes[name]) for r in subject.told if name in r.outcomes]
    broken = {row.number for row in told if subject.broken(row)}
    best = Answer(found.best.params, belief.mean, belief.low, belief.high)
    alone = found.observed[0].number if problem.goal == "feasible" else None
    seen = next((row for row in told if row.number == alone), None)
    ends = [float(end) for cut in found.slices[name] for end in cut.predicted.mean]
    y = front.outcome_axis(
        [row.value or 0.0 for row in told], [*ends, belief.low, belief.high], limits
    )
    figures = []
    for cut in found.slices[name]:
        drawn = charts.along(cut, best, seen, told, [], scales[cut.name], y, limits, broken)
        figures.append(figure(cut.name, drawn))
    through = "recommended" if problem.goal == "feasible" else f"in compromise {found.chosen + 1}"
    return section(
        f"{short(name, 60)}, one slice per parameter",
        f"The predicted value along each parameter, with the others as {through}. Wanted: "
        f"{wanted(problem, name)}.",
        _slice_key(limits, broken, seen, several=problem.goal == "front"),
        el("div", *figures, class_="grid"),
        class_="slices",
    )


def _slice_key(limits: list[float], broken: set[int], seen: Row | None, several: bool) -> Markup:
    return legend(
        ("predicted-key", "predicted, 95 %"),
        ("recommended-key", "the compromise" if several else "recommended"),
        *([("star-key", f"trial {seen.number}")] if seen is not None else []),
        ("trial-key", "trials"),
        *([("cross-key", "trials that break a limit")] if broken else []),
        *([("limit-key", f"limit {' and '.join(map(number, limits))}")] if limits else []),
    )


def _matters(found: JointFindings, everywhere: str) -> Markup:
    if not found.matters:
        return Markup()
    bars = [
        figure(name, charts.matters(*shares), diagnostics.interact(found.pairs[name]))
        for name, shares in found.matters.items()
    ]
    return section(
        "Which parameters matter",
        f"Shares of the variance of each predicted outcome over {everywhere} (Sobol indices): what "
        "a parameter explains alone and, paler, together with others.",
        el("div", *bars, class_="grid"),
        class_="matters",
    )


def _trials(subject: JointSubject, found: JointFindings | None) -> Markup:
    """The table of trials, with every outcome, and a word on what they are worth."""
    rows = subject.rows
    if not rows:
        return Markup()
    names, outcomes = list(subject.model.space), subject.problem.names
    messages = ["message"] if any(row.message for row in rows) else []
    notes = list(dict.fromkeys(name for row in rows for name in row.notes))
    chances = ["limits met"] if found is not None and found.chance is not None else []
    heads = ["trial", "state", "standing", *outcomes, *chances, *names, *messages, *notes]
    best = frozenset(() if found is None else (row.number for row in found.observed))
    place = {row.number: i for i, row in enumerate(subject.told)}
    body = []
    for row in rows:
        words, at = standing(subject, row, best), place.get(row.number)
        cells = [el("td", row.number), el("td", row.state), el("td", words)]
        cells += [_value(found, row, name, at) for name in outcomes]
        cells += [_likely(found, at)] * bool(chances)
        cells += _cells(row.params, names)
        cells += [el("td", message(row.message))] * bool(messages)
        cells += [el("td", message(row.notes.get(name, ""))) for name in notes]
        body.append(el("tr", *cells, class_=_kind(row, words)))
    objectives = subject.problem.objectives.items()
    largest = [*chances, *(name for name, o in objectives if o.direction == "maximize")]
    note = "Point at a value to see what is predicted for its trial." if found is not None else ""
    if chances:
        note = (
            "“Limits met” is the predicted probability that the values without noise meet all "
            "limits; “standing” goes by the measured values."
        )
    return section(
        "Trials",
        " ".join(filter(None, [note, failures(rows)])),
        table(heads, body, sorts=True, largest_first=largest),
        class_="trials",
    )


def _value(found: JointFindings | None, row: Row, name: str, at: int | None) -> Markup:
    value = exact(row.outcomes[name]) if name in row.outcomes else ""
    if found is None or at is None:
        return el("td", value)
    mean, _, low, high = (float(part[at]) for part in found.predicted[name])
    half = high / 2 - low / 2
    said = f"predicted {number(mean, half)} ± {number(half, half)}, half of the 95 % interval"
    return el("td", value, title=said)


def _likely(found: JointFindings | None, at: int | None) -> Markup:
    if found is None or found.chance is None or at is None:
        return el("td")
    return el("td", exact_chance(float(found.chance[at])))


def _kind(row: Row, words: str) -> str | None:
    if row.state != "told":
        return "bad" if row.state == "failed" else "out" if row.state in OUT else None
    if words in ("best", "on the front"):
        return "best"
    return "broken" if words.startswith("breaks ") else None
