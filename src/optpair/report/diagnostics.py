"""Sections on how good the model is: warnings, interactions, leave-one-out, all trials at once."""

from __future__ import annotations

from optpair.report import axes, charts, health
from optpair.report.contour import contour
from optpair.report.findings import Findings
from optpair.report.markup import Markup, el
from optpair.report.parts import legend, section
from optpair.report.subject import Subject
from optpair.report.words import percent

MOST_AXES = 9  # parameters side by side


def warnings(subject: Subject, found: Findings) -> Markup:
    """What looks wrong, where something does."""
    said = health.notes(subject, found)
    if not said:
        return Markup()
    return el("section", *(el("p", line) for line in said), class_="card health", id="health")


def together(subject: Subject, found: Findings, scales: dict[str, axes.Axis]) -> Markup:
    """The plane of the two parameters that interact most."""
    if found.plane is None:
        return Markup()
    drawn = contour(
        *(found.plane, found.recommended.params, found.observed, subject.told),
        *(scales, subject.sign),
    )
    x, y = found.plane.names
    key = legend(
        ("q4-key", "predicted, better is stronger"),
        ("recommended-key", "recommended"),
        ("star-key", "best observed"),
        ("trial-key", "trials"),
    )
    share = percent(found.plane.share)
    return section(
        f"{x} and {y} together",
        "The predicted value over the two parameters that interact most, the others as "
        f"recommended. {share} of its variance here is their interaction: what neither explains "
        "alone.",
        el("figure", drawn, key, class_="plane"),
        class_="together",
    )


def predicts(subject: Subject, found: Findings) -> Markup:
    """Each value beside what the others say of it."""
    check = found.check
    if check is None or len(check.y) < health.FEWEST or len(check.y) > charts.MOST_TITLED:
        return Markup()
    numbers = [subject.told[t].number for t in check.trial]
    within = int(health.inside(found).sum())
    share = percent(max(check.explained, 0.0))
    return section(
        "Can the model predict?",
        "Each value beside what the others say of it (leave-one-out, by today's hyperparameters). "
        f"{within} of {len(check.y)} lie in their 95 % interval, and {share} of the variance is "
        "predicted.",
        el(
            "figure",
            charts.left_out(check, numbers),
            legend(("predicted-key", "predicted, 95 %"), ("failed-key", "outside")),
            class_="plane",
        ),
        class_="predicts",
    )


def all_trials(
    subject: Subject, found: Findings, scales: dict[str, axes.Axis], axis: axes.Line
) -> Markup:
    """Parallel coordinates: of many parameters those that matter most."""
    if not 1 < len(subject.told) <= charts.MOST_TITLED:
        return Markup()
    order = sorted(scales, key=lambda name: -found.total.get(name, 0.0))[:MOST_AXES]
    chosen = {name: scales[name] for name in order}
    return section(
        "Every trial at a glance",
        "One line per trial, through its parameters to its value: the better, the stronger. Point "
        "at a line to see it alone.",
        el("div", charts.parallel(subject.told, chosen, axis, subject.sign), class_="threads"),
        class_="glance",
    )
