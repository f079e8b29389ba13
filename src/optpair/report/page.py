"""The page: one file of HTML that needs nothing else, and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from importlib import resources

import numpy as np

from optpair.problem.beliefs import agreement
from optpair.report import axes, charts, diagnostics, health, parallel
from optpair.report.cloud import Cloud
from optpair.report.curves import curves
from optpair.report.findings import Answer, Findings
from optpair.report.markup import Markup, broken, el, join
from optpair.report.parts import (
    as_json,
    conclusion,
    figure,
    from_trial,
    header,
    legend,
    parameters,
    section,
)
from optpair.report.subject import Modelled, Row, Subject, left_out
from optpair.report.timeline import timeline
from optpair.report.trials import trials
from optpair.report.words import (
    brief,
    count,
    exact,
    likely,
    nothing,
    number,
    percent,
    short,
    verdict,
)

DIRECTIONS = {"minimize": "minimised", "maximize": "maximised"}


def render(subject: Subject, found: Findings | None, made: datetime) -> str:
    """The whole page."""
    main = el("main", content(subject, found))
    return whole(subject.name, _header(subject, made), main, footer(found))


def whole(title: str, *parts: Markup) -> str:
    """A page of these parts, with the style and the script that all have."""
    script = asset("page.js")
    guard = el("meta", http_equiv="Content-Security-Policy", content=policy(script))
    body = el("body", *parts, el("script", Markup(script)))
    return document(title, asset("page.css"), body, guard)


def document(title: str, style: str, body: Markup, *more: Markup) -> str:
    """A whole page: its head, with more elements where there are some, and its body."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        *more,
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="generator", content="optpair"),
        el("title", f"{title} · optpair"),
        el("style", Markup(style)),
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def asset(name: str, package: str = "optpair.report") -> str:
    """The text of a file beside the modules of a package: a style or a script."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def policy(*scripts: str) -> str:
    """What a browser is to allow a page: its own style, and these scripts by their hashes."""
    digests = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}"


def content(subject: Subject, found: Findings | None) -> Markup:
    """What was found, and the trials."""
    body = conclusion(nothing(subject)) if found is None else _answers(subject, found)
    names = () if subject.model is None else subject.model.names
    value = subject.outcome
    largest = (value, "predicted") if subject.objective.direction == "maximize" else ()
    best = None if found is None else found.observed.number
    return join(
        [
            body,
            curves(subject.rows, subject.sign, best, subject.step),
            timeline(subject.rows),
            trials(
                *(subject.rows, names, _predicted(subject, found), found),
                value=value,
                largest_first=largest,
            ),
        ]
    )


def _header(subject: Subject, made: datetime) -> Markup:
    states = Counter(row.state for row in subject.rows)
    counts = ", ".join(f"{n} {state}" for state, n in states.most_common()) or "none yet"
    facts = [
        DIRECTIONS[subject.objective.direction],
        f"{count(len(subject.rows), 'trial')}: {counts}",
    ]
    if subject.model is not None:
        facts.append(_parameters(subject, subject.model))
    facts.append(made.strftime("%Y-%m-%d %H:%M"))
    return header(subject.name, facts)


def _parameters(subject: Subject, model: Modelled) -> str:
    """How many parameters there are, and how many of them are modelled where that is fewer."""
    names = {*model.names, *model.single, *subject.left_out}
    names.update(name for row in subject.rows for name in row.params)
    said = count(len(names), "parameter")
    return said if len(names) == len(model.names) else f"{said}, {len(model.names)} modelled"


def _answers(subject: Subject, found: Findings) -> Markup:
    model, told = subject.model, subject.told
    assert model is not None
    axis = charts.value_axis(found, told, subject.sign)
    scales, given = axes.of_model(model), {*model.space.contexts, *model.space.targets}
    return join(
        [
            conclusion(verdict(subject, found)),
            diagnostics.warnings(health.notes(subject, found)),
            _hero(subject, found),
            _tiles(found, subject),
            _over_time(subject, found),
            _where(subject, found, {n: s for n, s in scales.items() if n not in given}),
            _slices(subject, found, scales, axis),
            diagnostics.together(
                *(found.plane, found.recommended.params, [found.observed], told),
                *(scales, subject.sign),
            ),
            _matters(found, diagnostics.everywhere(model)),
            diagnostics.succeeds(found.succeeds, subject.rows, scales),
            diagnostics.borrowed(found.borrowed),
            _glance(subject, found, scales, axis),
            _checked(subject, found),
        ]
    )


def _hero(subject: Subject, found: Findings) -> Markup:
    best, seen = found.recommended, found.observed
    assert seen.value is not None
    spread = (best.high / 2 - best.low / 2) / 2  # about a standard deviation
    order = [*(n for n in seen.params if n in best.params), *best.params]  # as trials have it
    params = {name: best.params[name] for name in order}
    return el(
        "section",
        el(
            "article",
            el("h2", "Recommended"),
            el("p", exact(best.mean, spread), class_="big"),
            el("p", *_worth(best, spread)),
            *from_trial(best.trial),
            parameters(params),
            *(el("p", f"Believed: {line}", class_="note") for line in agreement(found.agree)),
            *(el("p", f"Left out: {line}", class_="note") for line in left_out(subject.left_out)),
            as_json(params),
            class_="card recommended-card",
            id="recommended",
        ),
        el(
            "article",
            el("h2", "Best observed"),
            el("p", exact(seen.value, spread), class_="big"),
            el(
                "p",
                f"the value of trial {seen.number}; predicted there: ",
                exact(found.expected.mean, spread),
            ),
            parameters(found.expected.params),
            class_="card observed-card",
            id="observed",
        ),
        el("article", el("h2", "Side by side"), charts.ruler(found), class_="card wide"),
        class_="hero",
    )


def _worth(best: Answer, spread: float) -> list[object]:
    """What the number is: a prediction with its interval, or a value that is known exactly."""
    if best.low == best.high:
        return ["its exact value; no other point is sure to be better"]
    ends = exact(best.low, spread), " to ", exact(best.high, spread)
    return ["predicted, without the noise; 95 % interval ", *ends]


def _tiles(found: Findings, subject: Subject) -> Markup:
    share, told = found.noise.share, len(subject.told)
    noise = "" if share is None or told < 3 else f", {percent(share)} of the variance of the values"
    most = number(found.gap_interval[1], digits=2)
    gap, gain, std = (exact(v, digits=2) for v in (found.gap, found.next_gain, found.noise.std))
    tiles = [
        (
            "gap",
            "still to be won",
            gap,
            f"is expected beyond the recommendation; at most {most} (95 %)",
        ),
        ("gain", "the next trial teaches", gain, "nats about the optimum"),
        ("noise", "noise of one value", std, f"standard deviation{noise}"),
    ]
    if found.success is not None:
        shown = el("data", likely(found.success), value=repr(found.success))
        tiles.append(("success", "chance of success", shown, "of a trial at the recommendation"))
    costs = [row.cost for row in subject.rows if row.cost is not None]
    if costs:
        spent = exact(float(sum(costs)))
        tiles.append(("spent", "spent so far", spent, f"by {count(len(costs), 'trial')}"))
    return el(
        "section",
        *(
            el(
                "div",
                el("h3", label),
                el("p", value, class_="big"),
                el("p", unit),
                id=key,
            )
            for key, label, value, unit in tiles
        ),
        class_="tiles",
    )


def _parts(rows: Sequence[Row]) -> str:
    """What trials are that did not end at the target."""
    pruned = any(row.state == "pruned" for row in rows)
    return "pruned" if pruned else "cheaper looks"


def _over_time(subject: Subject, found: Findings) -> Markup:
    axis = charts.value_axis(found, subject.told, subject.sign, charts.NARROW)
    progress = charts.progress(found, subject, axis)
    parts = [row for row in subject.told if not subject.whole(row)]
    key = legend(
        ("predicted-key", "best predicted, 95 %"),
        ("observed-key", "best observed"),
        ("trial-key", "trials"),
        *([("part-key", _parts(parts))] if parts else []),
        *([("failed-key", "failed")] if any(r.state == "failed" for r in subject.rows) else []),
    )
    gap, gain = (
        charts.unknown(found.moments, subject.rows, what, label)
        for what, label in (
            ("gap", "How much better the optimum is expected to be than the recommendation"),
            ("next_gain", "What the best next trial would teach, in nats"),
        )
    )
    return section(
        "Over time",
        "What the model would have said after fewer trials, with today's hyperparameters. Values "
        "off the scale are drawn at the edge.",
        figure("Best predicted and best observed", progress, key),
        figure("Still to be won", gap),
        figure("What the next trial teaches, in nats", gain),
        class_="time",
    )


def _where(subject: Subject, found: Findings, scales: dict[str, axes.Axis]) -> Markup:
    worth = axes.of_values([*found.worth, found.recommended.mean])
    cloud = Cloud(found, subject.told, scales, worth, subject.sign)
    best = "lowest" if subject.objective.direction == "minimize" else "highest"
    key = legend(
        ("q4-key", f"samples of the optimum, {best} f* strongest"),
        ("recommended-key", "recommended"),
        ("star-key", "best observed"),
        ("trial-key", "trials"),
    )
    return section(
        "Where the optimum is, and what it is worth",
        f"Each of the {len(found.worth)} dots is a sample of the optimal pair (x*, f*): a guess "
        "that fits the data. The tighter the cloud, the surer the answer. The bars count the dots "
        "along each axis.",
        el("div", cloud.menus(), class_="menus"),
        el("figure", cloud.svg(), key, class_="cloud"),
        el("script", cloud.data(), type="application/json", id="places"),
        _margins(found, scales),
        class_="where",
    )


def _margins(found: Findings, scales: dict[str, axes.Axis]) -> Markup:
    """Where most of the samples are, one line per parameter."""
    lines = [("f*", _most(found.worth))]
    for name, scale in scales.items():
        values = [star[name] for star in found.stars if name in star]
        share = len(values) / max(len(found.stars), 1)
        there = f" (there in {percent(share)})" if share < 1 else ""
        if not values:
            lines.append((name, "inactive in all"))
        elif isinstance(scale, axes.Choices):
            named, most = Counter(map(str, values)).most_common(1)[0]
            lines.append((name, f"{short(named, 24)}, {percent(most / len(values))}{there}"))
        else:
            lines.append((name, f"{_most(values)}{there}"))
    rows = (el("div", el("dt", broken(name)), el("dd", words)) for name, words in lines)
    return el("div", el("h3", "where 80 % of the samples are"), el("dl", *rows), class_="margins")


def _most(values: Sequence[float] | np.ndarray) -> str:
    """Between which values most are: 0.1 to 0.4, or one where all of those are the same."""
    low, high = brief(values, 0.1), brief(values, 0.9)
    return low if low == high else f"{low} to {high}"


def _slices(
    subject: Subject, found: Findings, scales: dict[str, axes.Axis], axis: axes.Line
) -> Markup:
    failed = [row for row in subject.rows if row.state == "failed" and row.x is not None]
    model = subject.model
    limited = diagnostics.LIMITED if model is not None and model.limits is not None else ""
    order = sorted(found.slices, key=lambda cut: -found.total.get(cut.name, 0.0))
    figures = [
        figure(
            cut.name,
            charts.along(
                cut, found.recommended, found.observed, subject.told, failed, scales[cut.name], axis
            ),
        )
        for cut in order
    ]
    key = legend(
        ("predicted-key", "predicted, 95 %"),
        ("recommended-key", "recommended"),
        ("star-key", "best observed"),
        ("trial-key", "trials"),
        *([("failed-key", "failed")] if failed else []),
    )
    return section(
        "One slice per parameter",
        f"The predicted value along each parameter, with the others as recommended{limited}. The "
        "further a trial is from the slice, the fainter it is. Values off the scale are drawn at "
        "the edge.",
        key,
        el("div", *figures, class_="grid"),
        class_="slices",
    )


def _checked(subject: Subject, found: Findings) -> Markup:
    shown = {} if found.check is None else {"": (found.check, subject.told)}
    return diagnostics.predicts(shown, {"": found.doubtful})


def _glance(
    subject: Subject, found: Findings, scales: dict[str, axes.Axis], axis: axes.Line
) -> Markup:
    values = [row.value for row in subject.told]
    columns = parallel.columns_of(subject.told, scales, found.total)
    worth = subject.sign * np.array(values, dtype=float)
    doubtful = np.array([row.number in found.doubtful for row in subject.told], dtype=bool)
    level = parallel.levels(np.where(doubtful, -np.inf, worth))
    titles = [charts.title(row) for row in subject.told]
    last = parallel.Column(subject.outcome, axis, values)
    return parallel.all_trials(subject.told, [*columns, last], level, titles)


def _matters(found: Findings, everywhere: str) -> Markup:
    if not found.total:
        note = "The predicted value is the same everywhere: no parameter is seen to matter yet."
        return section("Which parameters matter", note, class_="matters")
    return section(
        "Which parameters matter",
        f"Shares of the variance of the predicted value over {everywhere} (Sobol indices): what a "
        "parameter explains alone and, paler, together with others.",
        charts.matters(found.first, found.total),
        diagnostics.interact(found.pairs),
        class_="matters",
    )


def _predicted(subject: Subject, found: Findings | None) -> dict[int, str]:
    """What is predicted for the told trials, by their numbers."""
    if found is None:
        return {}
    mean, _, low, high = found.predicted
    halves = zip(subject.told, mean, high / 2 - low / 2, strict=True)
    return {row.number: f"{number(m, half)} ± {number(half, half)}" for row, m, half in halves}


def footer(found: Findings | None) -> Markup:
    """What the words of the page mean."""
    notes = [
        "Made by optpair. Predictions are of the noiseless value, averaged over hyperparameter "
        "sets. ",
        "A trial that was told has a value. x* is where the optimum is, and f* what it is worth "
        "without the noise; both are known only as samples that fit the data. A nat is an amount "
        "of information: one answers 1.44 yes-or-no questions. Values far worse than the median "
        "are compressed before the model sees them; all numbers here are in your units.",
    ]
    return el("footer", el("p", *(notes if found is not None else notes[:1])))
