"""The page: its structure, its numbers, what is escaped, and every odd study."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from report_cases import EVIL, SPACE, Page, made_up, numbers, params, search

from optpair import Categorical, Float, Int, Optimizer, Settings, Space
from optpair.integrations.optuna import JESSampler
from optpair.integrations.optuna.attributes import FAILED, OUTPUT, set_system_attribute
from optpair.problem.outcomes import Direction, Objective
from optpair.report import Row
from optpair.report.charts import progress, value_axis
from optpair.report.findings import gather, grid_along, moments
from optpair.report.page import render
from shell_cases import TINY, cheap, filled

optuna.logging.set_verbosity(optuna.logging.WARNING)
SCRIPTS = 2  # the page's own, and the numbers of the cloud


def read(path: Path) -> tuple[str, Page]:
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    for tag, attributes in page.elements:  # nothing from elsewhere, nothing that runs
        assert not {"src", "href", "action"} & attributes.keys(), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
    assert "@import" not in text
    assert "url(" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    return text, page


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Optimizer, Path, dict[str, Any]]:
    optimizer = search()
    optimizer.ask()
    path = tmp_path_factory.mktemp("report") / "page.html"
    return optimizer, path, optimizer.report(path, name=EVIL)


Told = tuple[Optimizer, Path, dict[str, Any]]


def test_numbers_on_the_page_are_the_optimizers(told: Told) -> None:
    optimizer, path, summary = told
    text, _ = read(path)
    belief = optimizer.belief()
    best = belief.recommendation
    assert numbers(text, "recommended") == [best.mean, *best.interval]
    seen = optimizer.predict([best.observed.params])
    assert numbers(text, "observed") == [
        best.observed.value,
        pytest.approx(float(seen.mean[0]), rel=1e-9),
    ]
    assert numbers(text, "gap") == [belief.gap]
    assert numbers(text, "gain") == [belief.next_gain]
    assert summary["recommendation"]["params"] == best.params
    assert summary["recommendation"]["mean"] == best.mean
    assert summary["path"] == str(path)
    json.dumps(summary)


def test_dots_of_a_cell_fill_it() -> None:
    """Two parameters of few values: what moves a dot across does not say what moves it up."""
    space = Space({"a": Int(1, 2), "b": Categorical(["u", "v"]), "x": Float(0.0, 1.0)})
    subject, found = made_up(space, 100)
    same = {"a": 1, "b": "u", "x": 0.5}
    found = replace(found, stars=[same] * 96)
    page = render(subject, found, datetime(2026, 1, 1))
    data = json.loads(page.split('id="places">')[1].split("</script>")[0])
    across, up, _, _ = data["stars"]
    assert abs(np.corrcoef(across, up)[0, 1]) < 4 / np.sqrt(96)  # four standard errors
    assert len(set(across)) > 48
    assert len(set(up)) > 48


def test_pruned_trials_are_called_so_and_all_parameters_are_counted(tmp_path: Path) -> None:
    sampler = JESSampler(seed=0, hyperparameters="map", settings=Settings(**TINY))
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number % 2:
            trial.suggest_float("sometimes", 0, 1)
        trial.report(x, 1)
        if trial.number == 2:
            raise optuna.TrialPruned
        return x

    study.optimize(objective, n_trials=4)
    sampler.report(study, tmp_path / "page.html")
    text, _ = read(tmp_path / "page.html")
    assert "4 trials: 3 told, 1 pruned" in text
    assert text.count("<td>pruned</td>") == 1
    assert "2 parameters, 1 modelled" in text


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_table_begins_at_the_best(direction: Direction) -> None:
    subject, found = made_up(Space({"x": Float(0, 1)}), 100)
    subject = replace(subject, objective=Objective(direction))
    page = Page(render(subject, found, datetime(2026, 1, 1)))
    firsts = [b.get("data-first") for b in page.all("button") if not b.keys() & {"id", "hidden"}]
    heads = ["trial", "state", "value", "predicted", "x"]
    largest = {"value", "predicted"} if direction == "maximize" else set()
    assert firsts == ["down" if head in largest else None for head in heads]


def test_long_names_break_after_their_underscores() -> None:
    subject, found = made_up(Space({"learning_rate": Float(0, 1)}), 100)
    text = render(subject, found, datetime(2026, 1, 1))
    assert text.count("<dt>learning_<wbr>rate</dt>") == 3
    assert text.count(' class="number">') == 2  # of the recommended and the best observed
    assert '<span class="param">learning_<wbr>rate</span>' in text


def test_text_is_escaped_and_no_script_but_the_pages_own_is_there(told: Told) -> None:
    text, page = read(told[1])
    assert len(page.all("script")) == SCRIPTS
    assert not page.all("img")
    assert EVIL not in text
    assert "&lt;script&gt;document.title" in text
    policy = next(m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy


def test_structure(told: Told) -> None:
    optimizer, path, _ = told
    text, page = read(path)
    assert len(page.all("tr")) == 1 + len(optimizer.trials)
    assert len(page.all("select")) == 2
    assert len(page.all("option")) == 2 * (len(SPACE) + 1)
    assert len(page.all("circle", "haze")) == len(optimizer.belief().values)
    places = json.loads(page.words["places"])
    assert [len(row) for row in places["stars"]] == [len(optimizer.belief().values)] * 4
    assert [len(row) for row in places["trials"]] == [8] * 4
    everything = [u for kind in ("stars", "trials", "marks") for row in places[kind] for u in row]
    assert 0 <= min(everything) <= max(everything) <= 1000
    titles = re.findall(r"<h2>(.*?)</h2>", text)
    assert titles == [
        "Recommended",
        "Best observed",
        "Side by side",
        "Over time",
        "Where the optimum is, and what it is worth",
        "One slice per parameter",
        "lr &amp; co and act together",
        "Which parameters matter",
        "Where trials succeed",
        "Every trial at a glance",
        "Can the model predict?",
        "Trials",
    ]
    coordinates = re.findall(r'(?:d|cx|cy|x|y)="([^"]*)"', text)
    assert not [c for c in coordinates if "nan" in c or "inf" in c]
    assert len(text) < 200_000


def test_the_verdict_is_a_sentence(told: Told) -> None:
    _, page = read(told[1])
    words = page.words["verdict"]
    assert re.match(r"(Going on is|A little is|Something is|The model is not yet sure)", words)
    assert words.endswith(".")


def test_trials_that_are_out_and_failed_are_in_the_table(told: Told) -> None:
    text, page = read(told[1])
    assert len(page.all("tr", "bad")) == 1
    assert len(page.all("tr", "out")) == 1
    assert "<td>failed</td>" in text


@pytest.mark.parametrize("kind", ["empty", "asked", "all failed"])
def test_without_a_value_there_is_a_page_that_says_so(kind: str, tmp_path: Path) -> None:
    optimizer = cheap()
    for _ in range(0 if kind == "empty" else 3):
        trial = optimizer.ask()
        if kind == "all failed":
            optimizer.tell(trial, failed=True)
    path = tmp_path / "page.html"
    assert optimizer.report(path)["recommendation"] is None
    text, page = read(path)
    assert "Nothing to recommend yet." in text
    assert ("3 trials failed" in text) == (kind == "all failed")
    assert len(page.all("table")) == (kind != "empty")
    assert "predicted<" not in text  # no column without an entry


@pytest.mark.parametrize(
    "values",
    [
        [1.0],
        [2.0, 2.0, 2.0],
        [1e300, -1e300, 0.0],
        [5e-324, 0.0, 1e-320],
        [1e-300, 2e-300],
        [-3e8] * 2,
    ],
    ids=str,
)
def test_values_of_any_size(values: list[float], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    search(values).report(path)
    text, page = read(path)
    assert len(page.all("tr")) == 2 + len(values)
    assert not re.findall(r'(?:d|cx|cy|x|y)="[^"]*(?:nan|inf)', text)
    assert math.isfinite(sum(numbers(text, "gap")))


def test_one_parameter_and_one_value(tmp_path: Path) -> None:
    space = Space({"x": Float(0, 1)})
    optimizer = Optimizer(space, seed=0, hyperparameters="map", settings=Settings(**TINY))
    optimizer.tell({"x": 0.3}, 1.0)
    optimizer.report(tmp_path / "page.html")
    text, page = read(tmp_path / "page.html")
    assert "Too early to say." in text
    assert len(page.all("option")) == 4


def test_twenty_parameters_and_a_thousand_trials_stay_small() -> None:
    """A thousand rows in the table, and dots in every slice."""
    kinds: list[Any] = [Float(0, 1), Int(0, 50), Categorical([f"choice {i}" for i in range(7)])]
    space = Space({f"parameter {i}": kinds[i % 3] for i in range(20)})
    subject, found = made_up(space, 1000)
    text = render(subject, found, datetime(2026, 1, 1))
    assert len(Page(text).all("tr")) == 1001
    assert text.count("h0") >= 1000 * (len(space) + 2)  # over time, in the cloud, in every slice
    assert len(text) < 2_000_000


def test_moments_are_few_and_before_now() -> None:
    assert moments(1) == []
    assert moments(3) == [1, 2]
    for told in (10, 100, 500, 5000):
        found = moments(told)
        assert found[0] == 1
        assert found[-1] < told
        assert found == sorted(set(found))
    assert len(moments(100)) == 11
    assert len(moments(5000)) == 3


def test_the_first_two_axes_are_those_that_matter_in_the_order_of_the_space() -> None:
    space = Space({name: Float(0, 1) for name in "abcd"})
    subject, found = made_up(space, 9)
    found = replace(found, total={"a": 0.1, "b": 0.3, "c": 0.0, "d": 0.9})
    text = render(subject, found, datetime(2026, 1, 1))
    assert re.findall(r"<option [^>]*selected[^>]*>(.)<", text) == ["b", "d"]


def test_an_answer_has_two_digits_of_its_uncertainty() -> None:
    subject, found = made_up(Space({"x": Float(0, 1)}), 100)
    best = replace(found.recommended, mean=1.26, low=-6.21, high=9.04)
    text = render(subject, replace(found, recommended=best), datetime(2026, 1, 1))
    shown = re.findall(r"<data [^>]*>([^<]*)<", text[text.index('id="recommended"') :])
    assert shown[:3] == ["1.3", "−6.2", "9.0"]


def test_an_exact_answer_is_called_so(tmp_path: Path) -> None:
    optimizer = search(noise=0)
    optimizer.report(tmp_path / "page.html")
    text, _ = read(tmp_path / "page.html")
    assert optimizer.recommend().std == 0
    assert "its exact value; no other point is sure to be better" in text
    assert numbers(text, "recommended") == [optimizer.recommend().mean]


def test_samples_in_one_place_are_in_one_place() -> None:
    subject, found = made_up(Space({"x": Float(0, 1)}), 9)
    found = replace(found, stars=[{"x": 0.25}] * 96)
    text = render(subject, found, datetime(2026, 1, 1))
    assert "<dt>x</dt><dd>0.25</dd>" in text
    assert re.search(r"<dt>f\*</dt><dd>−?[\d.]+ to [\d.]+</dd>", text)


def test_trials_of_the_first_and_last_level_stay_in_their_slice() -> None:
    subject, found = made_up(Space({"n": Int(1, 3)}), 100)
    text = render(subject, found, datetime(2026, 1, 1))
    slices = text[text.index("One slice per parameter") :]
    dots = re.findall(r'd="((?:M[\d.]+ [\d.]+h0)+)" class="dots fade', slices)
    across = [float(x) for path in dots for x in re.findall(r"M([\d.]+) ", path)]
    assert len(across) == 100
    assert 46 == min(across) < max(across) == 340 - 12


def study(n: int = 5) -> optuna.Study:
    """With a category that is no plain value, a parameter of one value, and a failure."""
    sampler = optuna.samplers.RandomSampler(seed=0)
    made = optuna.create_study(sampler=sampler, study_name=EVIL)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.suggest_int("depth", 1, 8)
        trial.suggest_int("one", 3, 3)
        kind = trial.suggest_categorical("kind", [None, True, "<b>bold</b>"])
        if trial.number == 2:
            set_system_attribute(trial.study, trial, FAILED, True)
            trial.set_user_attr(OUTPUT, "Traceback\n" + "x" * 50_000 + "\n<i>no GPU</i>")
            raise ValueError
        return x + (kind is None)

    made.optimize(objective, n_trials=n, catch=(ValueError,))
    return made


def test_from_an_optuna_study(tmp_path: Path) -> None:
    sampler = JESSampler(seed=1, hyperparameters="map", settings=Settings(**TINY))
    made = study()
    made.enqueue_trial({"x": 0.5, "depth": 2, "one": 3, "kind": True})
    summary = sampler.report(made, tmp_path / "page.html")
    text, page = read(tmp_path / "page.html")
    best = sampler.recommend(made)
    assert numbers(text, "recommended") == [best.mean, *best.interval]
    assert summary["recommendation"]["params"] == best.params
    assert best.params["one"] == 3
    assert len(page.all("tr")) == 7
    assert "<b>bold" not in text
    assert "&lt;i&gt;no GPU&lt;/i&gt;" in text
    assert len(text) < 200_000  # of a long message the page shows a part
    assert "4 told, 1 failed, 1 enqueued" in text


def test_an_optuna_study_whose_trials_skip_a_parameter(tmp_path: Path) -> None:
    space = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in "ab"}
    sampler = JESSampler(
        seed=1, search_space=space, hyperparameters="map", settings=Settings(**TINY)
    )
    made = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        a = trial.suggest_float("a", 0.0, 1.0)
        return a if a > 0.5 else trial.suggest_float("b", 0.0, 1.0)

    made.optimize(objective, n_trials=5)
    assert {len(trial.params) for trial in made.trials} == {1, 2}
    summary, best = sampler.report(made, tmp_path / "page.html"), sampler.recommend(made)
    assert summary["recommendation"]["params"] == best.params
    assert summary["recommendation"]["mean"] == best.mean
    assert summary["best_observed"]["trial"] == best.observed.id


def test_a_failure_in_a_study_of_another_sampler_is_called_so(tmp_path: Path) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number in (2, 4):
            raise RuntimeError("diverged")
        return x**2

    made = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    made.optimize(objective, n_trials=6, catch=RuntimeError)
    sampler = JESSampler(seed=0, hyperparameters="map", settings=Settings(**TINY))
    sampler.report(made, tmp_path / "page.html")
    text, _ = read(tmp_path / "page.html")
    assert "6 trials: 4 told, 2 failed" in text
    assert "stale" not in text.partition("Who ran what")[0]


def test_an_optuna_study_whose_trials_share_no_parameter(tmp_path: Path) -> None:
    made = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    made.optimize(lambda trial: trial.suggest_float("ab"[trial.number % 2], 0.0, 1.0), n_trials=4)
    summary = JESSampler(seed=1).report(made, tmp_path / "page.html")
    assert "there is none." in summary["verdict"]
    text, _ = read(tmp_path / "page.html")
    assert "there is none." in text
    heads = text.partition("<thead>")[2].partition("</thead>")[0]
    assert "value" in heads
    assert "predicted" not in heads


def test_an_optuna_study_without_trials(tmp_path: Path) -> None:
    empty = optuna.create_study()
    JESSampler(seed=1).report(empty, tmp_path / "page.html", name="new")
    text, _ = read(tmp_path / "page.html")
    assert "No trial has been made yet." in text
    assert "<h1>new</h1>" in text


def test_a_place_that_cannot_be_is_refused_at_once(tmp_path: Path) -> None:
    optimizer = filled(cheap(), [1.0])
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        optimizer.report(tmp_path / "no" / "page.html")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        optimizer.report(tmp_path)


@pytest.mark.parametrize(("direction", "word"), [("minimize", "lower"), ("maximize", "higher")])
def test_better_is_lower_or_higher(direction: Direction, word: str, tmp_path: Path) -> None:
    optimizer = search(direction=direction)
    optimizer.report(tmp_path / "page.html")
    text, _ = read(tmp_path / "page.html")
    best = optimizer.recommend()
    assert numbers(text, "recommended") == [best.mean, *best.interval]
    subject, found = made_up(Space({"x": Float(0, 1)}), 100)
    subject = replace(subject, objective=Objective(direction))
    page = Page(render(subject, found, datetime(2026, 1, 1)))
    assert f"0.2 {word} than the recommendation" in page.words["verdict"]
    assert "nats" in page.words["verdict"]


def test_a_doubted_value_is_said_first_and_draws_nothing(tmp_path: Path) -> None:
    """494 for 49.4: the page says so at the top, and no chart is drawn to its measure."""
    opt = Optimizer(Space({"x": Float(0, 1), "y": Float(0, 1)}), direction="maximize", seed=0)
    points = [(i / 14, (0.618034 * i) % 1) for i in range(15)]
    for x, y in points:
        opt.tell({"x": x, "y": y}, 60 - 40 * (x - 0.4) ** 2 - 30 * (y - 0.5) ** 2)
    wrong = opt.trials[9]
    opt.revise(wrong, 494.0)
    said = opt.report(tmp_path / "page.html")
    text, _ = read(tmp_path / "page.html")
    assert said["verdict"].startswith("A value is in doubt. Trial 9: 494 is far from the ")
    assert text.count("is far from the") == 1
    assert said["best_observed"]["trial"] != 9
    assert re.search(r">9</td><td>in doubt</td>", text)
    assert "14 values are in their" in text
    ticks = re.findall(r"<text[^>]*>(−?[\d.]+)</text>", text)
    assert max(float(tick.replace("−", "-")) for tick in ticks) < 200
    best = re.search(r'd="([^"]*)" class="line observed-line"', text)
    assert best is not None
    opt.revise(wrong, 30.0)
    opt.report(tmp_path / "right.html")
    right, _ = read(tmp_path / "right.html")
    assert "in doubt" not in right
    assert "15 values are in their" in right


def test_only_whole_trials_are_the_best_over_time() -> None:
    """A pruned trial's value is shown as a circle, and is never the best one."""
    subject, found = made_up(Space({"x": Float(0, 1)}), 12)
    axis = value_axis(found, subject.told, subject.sign)

    def drawn(state: str) -> tuple[str, int]:
        low = min(row.value or 0.0 for row in subject.rows) - 0.5
        row = replace(subject.rows[5], state=state, value=low)
        rows = (*subject.rows[:5], row, *subject.rows[6:])
        text = str(progress(found, replace(subject, rows=rows), axis))
        line = re.search(r'd="([^"]*)" class="line observed-line"', text)
        assert line is not None
        return line[1], text.count('class="part"')

    whole = drawn("told")
    cut = drawn("pruned")
    assert (whole[1], cut[1]) == (0, 1)
    lowest = [max(float(y) for y in re.findall(r"V([\d.]+)", path)) for path in (whole[0], cut[0])]
    assert lowest[0] > lowest[1]  # further down is lower, and better


def test_slices_and_planes_of_a_mixture_are_of_mixtures(tmp_path: Path) -> None:
    limits = ["a + b + c == 1", "a <= 0.6"]
    space = Space({name: Float(0, 1) for name in "abc"}, where=limits)
    opt = Optimizer(space, outcomes={"strength": Objective("maximize")}, seed=0)
    for _ in range(7):
        trial = opt.ask()
        opt.tell(trial, 1 - (trial.params["a"] - 0.3) ** 2 - (trial.params["b"] - 0.5) ** 2)
    subject = opt.subject()
    assert subject.model is not None
    found = gather(subject)
    assert found is not None
    x = space.encode(found.recommended.params)
    for index, name in enumerate(space):
        grid = grid_along(subject.model, x, index)
        assert len(grid) > 30
        assert all(space.allows(space.decode(point)) for point in grid)
        assert max(space.decode(point)[name] for point in grid) == pytest.approx(
            0.6 if name == "a" else 1.0, abs=0.02
        )
    plane = found.plane
    assert plane is not None
    for i, first in enumerate(plane.across):
        for j, second in enumerate(plane.up):
            a = 1 - first - second if "a" not in plane.names else None
            if first + second > 1 + 1e-9 or (a is not None and a > 0.6 + 1e-9):
                assert np.isnan(plane.mean[i, j])
    assert np.isfinite(plane.mean).any()
    opt.report(tmp_path / "page.html")
    text, _ = read(tmp_path / "page.html")
    assert "or as near to that as the limits allow" in text
    assert "over all ranges, whatever the limits" in text
    assert "<button" in text
    assert ">strength</button>" in text  # the outcome has its own name, not “value”
    assert ">value</button>" not in text


def test_the_reasons_of_the_last_failures_stand_above_the_table(tmp_path: Path) -> None:
    opt = search(noise=0.1)
    for i in range(4):
        opt.tell(params(20 + i), failed=True, reason=f"Traceback …\n{EVIL if i == 3 else i} boiled")
    opt.report(tmp_path / "page.html")
    text, _page = read(tmp_path / "page.html")
    (said,) = re.findall(r'<p class="note">([^<]*Failed: .*?)</p>', text)
    assert "Failed: trial 10: 1 boiled; trial 11: 2 boiled; trial 12: &lt;script&gt;" in said
    assert said.startswith("± is half of the 95 % interval")
    assert said.endswith("boiled (and 1 before).")


def test_a_cheaper_look_is_not_whole() -> None:
    row = Row(0, "told", {"x": 0.2, "epochs": 3}, 1.0)
    assert not row.whole({"epochs": 81})
    assert replace(row, params={"x": 0.2, "epochs": 81}).whole({"epochs": 81})
    assert row.whole({})
