"""The page of several outcomes: what stands on it, and that it does not contradict itself."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cases import EVIL, Browse, Page

from optpair import Categorical, Constraint, Float, Optimizer, Settings, Space
from optpair.report import outcomes, outcomes_page
from optpair.report.contour import likely
from optpair.report.front import front, outcome_axis
from optpair.report.health import joint_notes
from optpair.report.outcome_words import probability, standing, verdict
from optpair.report.outcomes import Belief, JointFindings, JointSubject, Volume
from outcome_cases import ALL, CONSTRAINED, FRONT, LIMIT, point, several, told, truth
from shell_cases import TINY


def searched(wanted: dict[str, Any], count: int = 10) -> Optimizer:
    """Told trials, one without a load, a failure, and a trial that is out."""
    optimizer = told(several(wanted, way="map", steps=10, candidates=128), count)
    values = {name: truth(point(count))[name] for name in wanted if name != "load"}
    optimizer.tell(point(count), values, notes={"by": EVIL})
    optimizer.tell(point(count + 1), failed=True, reason=EVIL)
    optimizer.ask()
    return optimizer


class Shown:
    """A page, what came back, and what it was made of."""

    def __init__(self, optimizer: Optimizer, path: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(outcomes, "gather", self._gathered)
            self.summary = optimizer.report(path, name=EVIL)
        self.text = path.read_text(encoding="utf-8")
        self.page = Page(self.text)
        self.answer = optimizer.recommend()

    def _gathered(self, subject: JointSubject, gather: Any = outcomes.gather) -> JointFindings:
        self.subject: JointSubject = subject
        self.found: JointFindings = gather(subject)
        return self.found


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return Shown(searched(CONSTRAINED), tmp_path_factory.mktemp("limited") / "page.html")


@pytest.fixture(scope="module")
def compromises(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return Shown(searched(ALL), tmp_path_factory.mktemp("front") / "page.html")


def test_the_recommendation_stands_beside_its_limits(limited: Shown) -> None:
    best, answer = limited.summary["recommendation"], limited.answer
    assert best["params"] == dict(answer.params)
    assert best["chance"] == answer.chance
    assert best["outcomes"]["load"]["interval"] == list(answer.outcomes["load"].interval)
    assert f'<data value="{answer.mean!r}"' in limited.text
    assert f'<data value="{answer.chance!r}">{probability(answer.chance)}<' in limited.text
    assert "must be at most 0.5" in limited.page.words["limits"]
    assert len(limited.page.all("rect", "forbidden")) == 1
    assert limited.summary["best_observed"][0]["trial"] == answer.observed.id


def test_every_outcome_has_slices_and_the_limit_is_a_line_in_its_own(limited: Shown) -> None:
    assert len(limited.page.all("path", "band")) == 4  # two outcomes along two parameters
    lines = [a for a in limited.page.all("path", "limit") if "h" in (a["d"] or "")]
    assert len(lines) == 2  # of the load along each parameter
    assert limited.text.count("crosses fade") >= 2


def test_a_trial_that_breaks_a_limit_is_said_to(limited: Shown) -> None:
    rows = re.findall(r"<tr(?: class=\"(\w+)\")?><td>(\d+)</td><td>(\w+)</td><td>([^<]*)</td>",
                      limited.text)  # fmt: skip
    words = {int(number): (kind, said) for kind, number, _, said in rows}
    best = limited.answer.observed.id
    for i in range(10):
        broken = truth(point(i))["load"] > 0.5
        expected = ("broken", "breaks load") if broken else ("", "feasible")
        assert words[i] == (("best", "best") if i == best else expected)
    assert words[10] == ("", "without load")
    assert words[11] == ("bad", "")
    assert words[12] == ("out", "")


def test_the_front_is_that_of_recommend(compromises: Shown) -> None:
    shown, answer = compromises.summary["front"], compromises.answer
    assert [p["params"] for p in shown] == [dict(p.params) for p in answer.points]
    assert [p["chance"] for p in shown] == [p.chance for p in answer.points]
    assert compromises.summary["hypervolume"]["mean"] == answer.hypervolume
    assert compromises.summary["reference"] == dict(answer.reference)
    assert f'<data value="{answer.hypervolume!r}"' in compromises.text
    assert [o["trial"] for o in compromises.summary["best_observed"]] == [
        trial.id for trial in answer.observed
    ]
    drawn = compromises.text.partition('class="card front"')[2].partition("</section>")[0]
    assert drawn.count('class="whisker"') == len(answer.points)
    assert compromises.text.count(">on the front<") == len(answer.observed)


@pytest.mark.parametrize("kind", ["limited", "compromises"])
def test_the_model_is_checked_for_every_outcome(kind: str, request: pytest.FixtureRequest) -> None:
    shown: Shown = request.getfixturevalue(kind)
    titles = re.findall(r"<h2>(.*?)</h2>", shown.text)
    assert {"Every trial at a glance", "Can the model predict?"} <= set(titles)
    names = shown.subject.problem.names
    checks = shown.text.partition("<h2>Can the model predict?</h2>")[2].partition("</section>")[0]
    assert re.findall("<figcaption>(.*?)</figcaption>", checks) == list(names)
    for name in names:
        check = shown.found.checks[name]
        rows = [row for row in shown.subject.told if name in row.outcomes]
        assert [shown.subject.told[t].number for t in check.trial] == [r.number for r in rows]
        np.testing.assert_allclose(check.y, [r.outcomes[name] for r in rows])
        assert f"of {len(rows)} values are in their 95 % interval" in checks
        assert check.explained > 0.5  # smooth and without noise
    assert shown.found.success is not None
    assert "chance of success" in shown.text


@pytest.mark.parametrize(("least", "objectives"), [(0.0, ["gain"]), (1.1, [])])
def test_a_plane_is_shown_where_two_parameters_interact(
    limited: Shown, monkeypatch: pytest.MonkeyPatch, least: float, objectives: list[str]
) -> None:
    monkeypatch.setattr(outcomes, "INTERACTS", least)
    found = outcomes.gather(limited.subject)
    assert found is not None
    assert list(found.planes) == objectives
    text = outcomes_page.render(limited.subject, found, datetime(2026, 1, 1))
    assert text.count(" together</h2>") == len(objectives)


@pytest.mark.parametrize("kind", ["limited", "compromises"])
def test_a_map_shows_where_the_limits_are_met(kind: str, request: pytest.FixtureRequest) -> None:
    """The load is the distance from x = 0.1, and may be 0.5: x up to 0.6, whatever y is."""
    shown: Shown = request.getfixturevalue(kind)
    plane = shown.found.feasible
    assert plane is not None
    assert set(plane.names) == {"x", "y"}
    x, chance = plane.across, plane.mean
    if plane.names[0] == "y":
        x, chance = plane.up, plane.mean.T
    assert chance[np.array(x) < 0.45].mean() > 0.9
    assert chance[np.array(x) > 0.75].mean() < 0.1
    drawn = shown.text.partition("<h2>Where the limits are met</h2>")[2].partition("</figure>")[0]
    (crosses,) = re.findall(r'd="([^"]*)" class="crosses trial"', drawn)
    assert crosses.count("m0-5.2") == sum(bool(shown.subject.broken(r)) for r in shown.subject.told)
    assert 'class="shade8"' in drawn


def test_shades_of_probabilities() -> None:
    chance = np.array([0.0, 0.11, 0.5, 0.9499, 0.95, 1.0])
    assert likely(chance).tolist() == [0, 0, 4, 7, 8, 8]


@pytest.mark.parametrize("goal", [FRONT, {"gain": "maximize"}], ids=["front", "limit"])
def test_where_nothing_is_feasible_the_page_says_so(goal: Any, tmp_path: Path) -> None:
    optimizer = told(several({**goal, "load": Constraint(low=30)}, way="map"), 8)
    shown = Shown(optimizer, tmp_path / "page.html")
    said = verdict(shown.subject, shown.found)
    assert said.level == "little"
    assert (
        "predicted to come closest: its probability is 0 %. Probably no point does" in said.reason
    )
    assert shown.found.feasible is None  # the same everywhere
    if goal is FRONT:  # the axes of a single point have room for the trials
        drawn = str(front(shown.subject, shown.found, "gain", "cost", wide=True))
        (crosses,) = re.findall(r'd="([^"]*)" class="crosses trial"', drawn)
        places = {float(x) for x in re.findall(r"M([\d.]+) ", crosses)}
        assert len(places) == 8
    else:
        assert "<h2>Predicted to come closest</h2>" in shown.text


def test_lines_of_trials_end_at_every_outcome_and_break_no_limit_boldly(limited: Shown) -> None:
    zones = [zone["data-name"] for zone in limited.page.all("rect", "zone")]
    assert sorted(zones[:2]) == ["x", "y"]
    assert zones[2:] == list(limited.subject.problem.names)
    lines = {int(a["data-n"] or -1): a for a in limited.page.all("path", "thread")}
    for row in limited.subject.told:
        line = lines[row.number]
        assert ("level0" in (line["class"] or "")) or not limited.subject.broken(row)
        missing = [(y == "-") for y in (line["data-y"] or "").split(" ")[2:]]
        assert missing == [name not in row.outcomes for name in zones[2:]]


def test_what_looks_wrong_is_said_by_outcome(limited: Shown) -> None:
    assert joint_notes(limited.subject, limited.found) == []
    checks = {n: c._replace(explained=-0.1) for n, c in limited.found.checks.items()}
    said = joint_notes(limited.subject, replace(limited.found, checks=checks))
    assert [line.split(":")[0] for line in said] == [
        f"No parameter explains {name}" for name in checks
    ]
    best = limited.found.best
    edge = replace(best, params=dict(best.params) | {"x": 0.0})
    at = replace(limited.found, points=(edge,), stars=[edge.params] * 9)
    (bound,) = joint_notes(limited.subject, at)
    assert "at the lower bound of x (0)" in bound


def test_the_observed_front_is_a_stair_below_which_everything_is_beaten(compromises: Shown) -> None:
    """The corners have the worse gain and the worse cost of their two ends."""
    drawn = front(compromises.subject, compromises.found, "gain", "cost", wide=True)
    (path,) = re.findall(r'd="(M[^"]*)" class="line observed-line"', str(drawn))
    moves = re.findall(r"[MHV][^MHV]*", path)
    seen = sorted(row.outcomes["gain"] for row in compromises.found.observed)
    assert len(moves) == 2 * len(seen) - 1
    assert [move[0] for move in moves[1:]] == ["V", "H"] * (len(seen) - 1)


def test_three_objectives_have_a_chart_of_every_pair(tmp_path: Path) -> None:
    wanted = FRONT | {"load": "minimize"}
    optimizer = told(several(wanted, way="map", steps=5, candidates=64), 6)
    optimizer.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for pair in ("gain and cost", "gain and load", "cost and load"):
        assert text.count(f'aria-label="The front of {pair}"') == 1
    assert "observed-line" not in text.partition("</style>")[2]
    assert "limits met" not in text


def said(shown: Shown, **changes: Any) -> Any:
    return verdict(shown.subject, replace(shown.found, **changes))


def test_the_verdict_on_limits(limited: Shown) -> None:
    (best,) = limited.found.points
    unlikely = {"points": (replace(best, chance=0.6),)}
    probably = said(limited, **unlikely, possible=0.5)  # fewer samples than the chance says
    assert probably.headline == "No point is likely to meet all limits yet."
    assert "the likeliest: its probability is 60 %" in probably.reason
    assert "The probability that there is such a point is 60 %" in probably.reason
    hopeless = said(limited, points=(replace(best, chance=0.001),), possible=0.0)
    assert hopeless.level == "little"
    assert "relax a limit" in hopeless.reason
    none = said(limited, points=(replace(best, chance=0.96),), gap={"gain": Belief(0.0, 0.0, 0.0)})
    assert none.level in ("done", "go")
    assert "no better gain is to be had" in none.reason


@pytest.mark.parametrize(
    ("gap", "size", "level", "headline"),
    [
        (Belief(0.01, 0.0, 0.05), Belief(1, 0.95, 1.05), "done", "Going on is hardly worth it."),
        (Belief(0.01, 0.0, 0.05), Belief(1, 0.5, 1.5), "go", "The model is not yet sure."),
        (Belief(0.05, 0.0, 0.2), Belief(1, 0.95, 1.05), "little", "A little is left to be won."),
        (Belief(0.3, 0.0, 0.5), Belief(1, 0.95, 1.05), "go", "Going on is worth it."),
    ],
)
def test_the_verdict_on_a_front(
    compromises: Shown, gap: Belief, size: Belief, level: str, headline: str
) -> None:
    found = said(compromises, volume=Volume(size, gap, {}), next_gain=1.0, doubted=[])
    assert (found.level, found.headline) == (level, headline)
    assert f"About {100 * gap.mean:g} % more hypervolume" in found.reason


@pytest.mark.parametrize("size", [0.0, 1e308])
def test_a_hypervolume_beyond_numbers_says_nothing(compromises: Shown, size: float) -> None:
    volume = Volume(Belief(size, size, size), Belief(0.0, 0.0, 0.0), {})
    found = said(compromises, volume=volume)
    assert (found.level, found.headline) == ("go", "Judge by the front itself.")


def test_a_limit_that_was_never_measured_is_named(limited: Shown) -> None:
    (best,) = limited.found.points
    rows = tuple(replace(row, outcomes={"gain": 1.0}) for row in limited.subject.told)
    found = verdict(
        replace(limited.subject, rows=rows),
        replace(limited.found, points=(replace(best, chance=0.5),)),
    )
    assert found.reason == "No trial has a value of load yet."


def test_probabilities_are_rounded_down() -> None:
    shown = [probability(c) for c in (0.94999, 0.95, 1.0, 0.0, 1e-9)]
    assert shown == ["94.9 %", "95 %", "100 %", "0 %", "under 0.1 %"]


def test_what_is_far_off_does_not_stretch_the_axis() -> None:
    line = outcome_axis([*range(10), 1e9], [2.0, 12.0], [11.0, 1e6])
    assert line.high == pytest.approx(12 + 0.06 * 12)
    assert line.low == pytest.approx(0 - 0.06 * 12)
    assert outcome_axis([3.0, 3.0], [3.0], [4.0]).at(4.0) < 1


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], "No trial has given a value yet."),
        ([{"load": 0.2}], "No trial has a value of gain yet, which is an objective."),
        (["failed"], "1 trial failed, and none gave a value"),
        (["out"], "Trials are under way, and none has given a value yet."),
        ([{"gain": 0.2}], "1 trial: too few to tell signal from noise"),
        ([{"gain": 1e300, "load": -1e300}, {"gain": -1e300, "load": 1e300}], "2 trials: too few"),
    ],
)
def test_a_page_of_little(tmp_path: Path, values: list[Any], words: str) -> None:
    wanted: dict[str, Any] = {"gain": "maximize", "load": LIMIT}
    optimizer = several(wanted, way="map", steps=5, candidates=64)
    for i, given in enumerate(values):
        if given == "out":
            optimizer.ask()
        else:
            optimizer.tell(
                point(i), **({"failed": True} if given == "failed" else {"value": given})
            )
    shown = optimizer.report(tmp_path / "page.html")
    assert words in shown["verdict"]
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert words in page.words["verdict"]


def test_standing_without_limits_is_by_the_front(compromises: Shown) -> None:
    problem = replace(
        compromises.subject.problem,
        outcomes={n: o for n, o in compromises.subject.problem.outcomes.items() if n != "load"},
    )
    subject = replace(compromises.subject, problem=problem)
    row = subject.told[0]
    assert standing(subject, row, frozenset()) == "beaten"
    assert standing(subject, row, frozenset({row.number})) == "on the front"


def test_in_a_browser_nothing_is_wrong(tmp_path: Path, browse: Browse) -> None:
    """Nasty names everywhere; the trials can be sorted, the compromises stay as they are."""
    space = Space({EVIL: Float(0, 1), "act": Categorical([EVIL, "b"])})
    wanted: dict[str, Any] = {EVIL: "maximize", "cost & co": "minimize", "<b>": Constraint(high=1)}
    optimizer = Optimizer(
        space, outcomes=wanted, seed=0, hyperparameters="map", settings=Settings(**TINY)
    )
    for i in range(6):
        params = {EVIL: i / 6, "act": (EVIL, "b")[i % 2]}
        optimizer.tell(params, {EVIL: i / 6, "cost & co": (i / 6) ** 2, "<b>": i / 4})
    path = tmp_path / "page.html"
    optimizer.report(path, name=EVIL)
    text = path.read_text(encoding="utf-8")
    Page(text)
    seen = browse(path)
    assert seen.console == []
    assert seen.dom.count("<script") == 1
    assert "<title>&lt;script&gt;" in seen.dom


def test_the_table_of_trials_holds_what_is_predicted(limited: Shown) -> None:
    estimate = limited.found.predicted["load"]
    assert limited.found.chance is not None
    assert len(estimate.mean) == len(limited.found.chance) == len(limited.subject.told) == 11
    measured = np.array([row.outcomes.get("load", np.nan) for row in limited.subject.told])
    assert np.nanmax(np.abs(estimate.mean - measured)) < 0.2
    assert limited.text.count('title="predicted ') == 2 * 11
