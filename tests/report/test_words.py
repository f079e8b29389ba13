"""Numbers, axes, markup and the sentence on going on, without a model."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_cases import made_up

from optpair import Categorical, Float, Int, Optimizer, Space
from optpair.engine.answers import Noise
from optpair.report import axes, words
from optpair.report.findings import Answer
from optpair.report.markup import Markup, el, text
from optpair.report.words import number, verdict


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
    kinds = axes.of_parameter(Categorical([1, True, "1"]))
    assert [kinds.at(v) for v in (1, True, "1")] == pytest.approx([1 / 6, 0.5, 5 / 6])


@pytest.mark.parametrize(
    ("gap", "gain", "level"),
    [(1.0, 0.3, "go"), (0.05, 0.3, "little"), (1e-4, 0.3, "done"), (1.0, 1e-4, "little")],
)
def test_going_on_is_weighed(gap: float, gain: float, level: str) -> None:
    subject, found = made_up(Space({"x": Float(0, 1)}), 30)
    best = Answer(found.recommended.params, -1.0, -1.1, -0.9)  # the median value is near 0
    found = replace(found, recommended=best, gap=gap, next_gain=gain)
    said = verdict(subject, found)
    assert said.level == level
    assert number(gap, digits=2) in said.reason
    assert ("less than the noise" in said.reason) == (gap < found.noise.std)
    early = replace(subject, rows=subject.rows[:2])
    assert verdict(early, found).level == "early"


def test_nothing_left_is_said_in_words() -> None:
    """Also where all values are the same, and nothing was won over the median."""
    subject, found = made_up(Space({"x": Float(0, 1)}), 30)
    narrow = replace(found.recommended, low=-0.1, high=0.1)
    for row in (narrow, replace(narrow, mean=-1.0)):
        said = verdict(subject, replace(found, recommended=row, gap=0.0))
        assert said.level == "done"
        assert said.reason.startswith("The optimum is not expected to be better")
        assert "less than the noise" not in said.reason
        assert "%" not in said.reason


@pytest.mark.parametrize(
    ("half", "gap", "noise", "level"),
    [
        (0.5, 1e-4, 0.3, "go"),  # a quarter of the way from the median, 0.1, to the best, −2
        (0.25, 1e-4, 0.3, "done"),  # within the noise
        (0.1, 1e-4, 0.01, "done"),  # next to what the values span
        (0.25, 0.0, 0.3, "go"),  # no gap at all: cut off at 0
        (1e307, 0.0, 0.3, "go"),
        (1e308, 0.0, 1e200, "go"),
    ],
)
def test_little_is_left_only_where_the_interval_is_narrow(
    half: float, gap: float, noise: float, level: str
) -> None:
    subject, found = made_up(Space({"x": Float(0, 1)}), 30)
    values = sorted(row.value or 0.0 for row in subject.rows)
    assert values[15] - values[0] == pytest.approx(2.0, abs=0.5)
    best = Answer(found.recommended.params, -1.0, -1 - half, -1 + half)
    said = verdict(subject, replace(found, recommended=best, gap=gap, noise=Noise(noise, 0.4)))
    assert said.level == level
    assert ("hardly worth it" in said.headline) == (level == "done")
    if level == "go":
        assert said.headline == "The model is not yet sure."
        assert f"from {number(best.low, digits=3)} to {number(best.high, digits=3)}" in said.reason


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
