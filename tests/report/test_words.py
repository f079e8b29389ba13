"""Numbers, axes, markup and the sentence on going on, without a model."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_cases import made_up

from optpair import Categorical, Float, Int, Optimizer, Ordinal, Space
from optpair.engine.answers import Noise
from optpair.report import axes, words
from optpair.report.findings import Answer, Findings
from optpair.report.markup import Markup, el, text
from optpair.report.subject import Subject
from optpair.report.words import Verdict, number, verdict


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (0.123456, "0.1235"),
        (-2.5, "−2.5"),
        (-0.0, "0"),
        (12345.6, "12346"),
        (1e-7, "1e−7"),
        (-1.5e300, "−1.5e300"),
        (math.inf, "∞"),
    ],
)
def test_numbers(value: float, shown: str) -> None:
    assert number(value) == shown


def test_numbers_at_a_resolution() -> None:
    assert [number(v, 0.048) for v in (0.31814, 0.2953, 1e-9)] == ["0.318", "0.295", "0.000"]
    assert [number(v, 0.048) for v in (-1e-9, -0.0004)] == ["0.000", "0.000"]  # no minus
    assert number(1024, digits=3) == "1024"
    assert words.percent(0.004) == "under 1 %"


def test_exact_numbers_have_every_digit() -> None:
    assert f'value="{1 / 3!r}"' in words.exact(1 / 3)


@pytest.mark.parametrize(
    "parameter",
    [
        Float(0, 1),
        Float(-3e-9, 5e12),
        Float(1e-5, 1, log=True),
        Float(1.5, 4.0, log=True),
        Float(1e-300, 1e300, log=True),
        Float(3.1, 3.2, log=True),
        Int(1, 2),
        Int(0, 13),
        Int(16, 1024, log=True),
        Int(0, 2**39),
        Categorical(["a", 1, True, None]),
        Categorical([f"category {i}" for i in range(100)]),
    ],
    ids=str,
)
def test_marks_are_few_inside_and_in_order(parameter: Float | Int | Categorical) -> None:
    axis = axes.of_parameter(parameter)
    places = [place for place, _ in axis.ticks()]
    labels = [label for _, label in axis.ticks()]
    assert 1 <= len(places) <= 12
    assert all(0 <= place <= 1 for place in places)
    assert places == sorted(set(places))
    assert len(set(labels)) == len(labels)
    if isinstance(parameter, Int):
        assert all(float(label.replace("−", "-")).is_integer() for label in labels)


def test_marks_leave_each_other_room() -> None:
    """A narrow drawing asks for fewer, also within two decades."""
    axis = axes.of_parameter(Int(16, 1024, log=True))
    assert [label for _, label in axis.ticks(6)] == ["20", "50", "100", "200", "500", "1000"]
    assert [label for _, label in axis.ticks(4)] == ["30", "100", "300", "1000"]


def test_long_names_keep_both_ends() -> None:
    names = [f"a category with the number {i}" for i in range(3)]
    shown = [words.short(name) for name in names]
    assert len(set(shown)) == 3
    assert all(len(label) == 14 and label.startswith("a cat") for label in shown)
    assert words.short("just a few 14!") == "just a few 14!"


def test_places() -> None:
    axis = axes.of_parameter(Float(1e-4, 1, log=True))
    assert [axis.at(v) for v in (1e-4, 1e-2, 1.0, 7.0)] == pytest.approx([0, 0.5, 1, 1])
    assert axes.of_parameter(Int(0, 4)).at(1) == 0.25
    large = axes.of_parameter(Int(10**17, 10**17 + 5))  # floats do not tell them apart
    assert large.at(10**17 + 1) == 0.2
    assert [place for place, _ in large.ticks()] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    levels = axes.of_parameter(Ordinal([1, 2, 5, 10], spacing="even"))
    assert [levels.at(v) for v in (0.5, 1, 3.5, 10, 99)] == [0, 0, 0.5, 1, 1]
    assert [label for _, label in levels.ticks()] == ["1", "2", "5", "10"]
    assert levels.levels == 4
    crowded = axes.of_parameter(Ordinal(range(100)))
    assert [label for _, label in crowded.ticks()] == [str(12 * i) for i in range(9)]
    assert crowded.levels == 0
    kinds = axes.of_parameter(Categorical([1, True, "1"]))
    assert [kinds.at(v) for v in (1, True, "1")] == pytest.approx([1 / 6, 0.5, 5 / 6])


def judged(
    gap: float, most: float, half: float = 0.0, gain: float = 0.3, noise: float = 0.01
) -> tuple[Verdict, Subject, Findings]:
    """A verdict on a belief that is made up: the recommendation has won 1 over the first trials."""
    subject, found = made_up(Space({"x": Float(0, 1)}), 30)
    rows = [replace(row, value=v) for row, v in zip(subject.rows[:2], (0.5, -0.5), strict=True)]
    subject = replace(subject, rows=(*rows, *subject.rows[2:]))
    found = replace(
        found,
        recommended=Answer(found.recommended.params, -1.0, -1 - half, -1 + half),
        gap=gap,
        gap_interval=(0.0, most),
        next_gain=gain,
        noise=Noise(noise, 0.4),
    )
    return verdict(subject, found), subject, found


@pytest.mark.parametrize(
    ("gap", "most", "half", "gain", "level"),
    [
        (0.03, 0.09, 0.09, 0.3, "done"),  # at most a tenth of what was won, both
        (0.03, 0.11, 0.09, 0.3, "little"),  # the upper end counts
        (0.01, 0.11, 0.09, 0.3, "unsure"),  # expected to be next to nothing, and may be more
        (0.01, 0.09, 0.11, 0.3, "unsure"),  # the interval of the recommendation counts
        (0.0, 0.0, 0.11, 0.3, "unsure"),  # nothing at all, beside a wide interval
        (0.0, 0.0, 0.0, 0.0, "done"),
        (0.05, 0.5, 0.0, 0.3, "little"),
        (0.5, 2.0, 0.0, 0.3, "go"),
        (0.5, 2.0, 0.0, 1e-4, "hard"),
        (0.0, 0.0, 1e307, 0.3, "unsure"),
        (1e308, 1.7e308, 1e308, 0.3, "go"),
    ],
)
def test_going_on_is_weighed(gap: float, most: float, half: float, gain: float, level: str) -> None:
    said, subject, found = judged(gap, most, half, gain)
    assert (
        said[:2]
        == {
            "done": ("done", "Going on is hardly worth it."),
            "little": ("little", "A little is left to be won."),
            "hard": ("little", "Something is left, but hard to get."),
            "unsure": ("go", "The model is not yet sure."),
            "go": ("go", "Going on is worth it."),
        }[level]
    )
    if most > 0:
        about, at_most = number(gap, digits=2), number(most, digits=2)
        assert f"about {about} lower than the recommendation, at most {at_most} (95 %)" in (
            said.reason
        )
    else:
        assert said.reason.startswith("The optimum is not better than the recommendation")
    assert "the recommendation is 1 lower than the first trials" in said.reason
    best = found.recommended
    interval = f"from {number(best.low, digits=3)} to {number(best.high, digits=3)} (95 %)"
    assert (interval in said.reason) == (level == "unsure" and half > 0.1)
    early = replace(subject, rows=subject.rows[:2])
    assert verdict(early, found).level == "early"


def test_nothing_is_small_beside_nothing() -> None:
    """All values are the same, or the recommendation is worse than the first trials."""
    for mean in (0.0, 1.0):
        _, subject, found = judged(1e-9, 1e-9)
        found = replace(found, recommended=Answer(found.recommended.params, mean, mean, mean))
        assert verdict(subject, found).level == "go"


def test_a_search_that_is_done_has_no_forecast() -> None:
    """It would advise more trials in the same breath."""
    for gap, most, expected in ((0.03, 0.09, False), (0.5, 2.0, True)):
        _, subject, found = judged(gap, most)
        assert ("About 7 more trials" in verdict(subject, replace(found, halved=7)).reason) == (
            expected
        )


def test_what_is_left_is_compared_with_the_noise() -> None:
    words = "What is left is less than the noise of a single trial (±0.3)."
    assert words in judged(0.05, 0.2, noise=0.3)[0].reason
    assert "less than the noise" not in judged(0.05, 0.4, noise=0.3)[0].reason
    exact = judged(0.01, 0.01, half=0.3, noise=0.0)[0]
    assert exact.headline == "The model is not yet sure."
    assert "noise" not in exact.reason


def test_one_value_that_is_ten_times_too_large(tmp_path: Path) -> None:
    """Fifteen trials, the tenth of them told wrong: the interval is wide, but does not explode."""
    space = Space({"u": Float(0, 1), "v": Float(0, 1)})
    optimizer = Optimizer(space, direction="maximize", seed=0)
    rng = np.random.default_rng(0)
    for i in range(15):
        trial = optimizer.ask()
        u, v = trial.params["u"], trial.params["v"]
        value = 50 - 80 * ((u - 0.3) ** 2 + (v - 0.6) ** 2) + 0.5 * rng.normal()
        optimizer.tell(trial, 10 * value if i == 9 else value)
    low, high = optimizer.recommend().interval
    assert -1000 < low < 50 < high < 1000
    said = optimizer.report(tmp_path / "page.html")["verdict"]
    assert "hardly worth it" not in said


def test_markup_is_escaped_once() -> None:
    inner = el("b", "1 < 2")
    assert (
        el("p", inner, " & ", class_='"x"') == '<p class="&quot;x&quot;"><b>1 &lt; 2</b> &amp; </p>'
    )
    assert text("a\x00b\ud800") == Markup("a\ufffdb?")
    assert len(el("path", d="M0 0h0" * 10**4)) > 60_000  # a drawing is never cut
