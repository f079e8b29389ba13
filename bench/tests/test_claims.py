"""Claims are settled as they should be, on rows made by hand; and the page says so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from optpair_bench import methods, page, prose, tasks
from optpair_bench.analysis import claims
from optpair_bench.figures import measures
from optpair_bench.running import experiments
from optpair_bench.running.rows import Row, append

GP = experiments.get("gp")
FULL = Path(__file__).parents[1] / "results" / page.TABLE1


def row(method: str, seed: int, inference: list[float], simple: list[float] | None = None) -> Row:
    """A run on gp2; log10 regrets at 0, 20, 40, … of its evaluations."""
    points = [20 * i for i in range(len(inference))]
    return {
        "experiment": "gp",
        "task": "gp2",
        "method": method,
        "seed": seed,
        "evaluations": points[-1],
        "dimensions": 2,
        "initial": 3,
        "noise_var": 0.01,
        "settings": None,
        "checkpoints": {
            "evaluations": points,
            "inference": [10.0**v for v in inference],
            "simple": [10.0**v for v in simple or inference],
            "observed": [-(10.0**v) for v in inference],
        },
        "ask_seconds": {"median": 0.5},
        "seconds": 12.0,
    }


# JES ends at −2, −2.2; MES a decade worse and PES half a decade better, both exactly.
ROWS = [
    row("jes", 0, [0, -2], [0, -2]),
    row("jes", 1, [0, -2.2], [0, -2.2]),
    row("mes", 0, [0, -1], [0, -1.1]),
    row("mes", 1, [0, -1.2], [0, -1.3]),
    row("pes", 0, [0, -2.5], [0, 0]),
    row("pes", 1, [0, -2.7], [0, -0.1]),
]


@pytest.mark.parametrize(
    ("mean", "error", "expected", "verdict"),
    [
        (-0.5, 0.2, "better", "agrees"),
        (-0.5, 0.3, "better", "undecided"),
        (0.5, 0.2, "better", "disagrees"),
        (-0.5, 0.2, "no worse", "agrees"),
        (0.1, 0.09, "no worse", "agrees"),  # surely below a factor of two
        (0.1, 0.2, "no worse", "undecided"),
        (0.1, 0.04, "no worse", "agrees"),  # surely worse, if by little
        (0.4, 0.04, "no worse", "disagrees"),
        (0.1, 0.09, "equal", "agrees"),
        (-0.2, 0.04, "equal", "agrees"),
        (-0.2, 0.09, "equal", "undecided"),  # surely not 0, but perhaps within the margin
        (-0.5, 0.09, "equal", "disagrees"),
        (0.5, 0.09, "equal", "disagrees"),
        (0.2, 0.2, "equal", "undecided"),
        (-0.5, 0.09, "much better", "agrees"),
        (-0.5, 0.2, "much better", "undecided"),
        (-0.2, 0.04, "much better", "disagrees"),  # better, but not by much
        (0.5, 0.2, "worse", "agrees"),
        (-0.5, 0.2, "worse", "disagrees"),
        (0.2, 0.2, "worse", "undecided"),
        (-0.2, 0.04, "counted", "equal"),
        (-0.5, 0.2, "counted", "better"),
        (0.5, 0.2, "counted", "worse"),
        (0.2, 0.2, "counted", "undecided"),
        (-9.0, float("nan"), "better", "undecided"),
    ],
)
def test_verdicts(
    mean: float, error: float, expected: claims.Expected, verdict: claims.Verdict
) -> None:
    assert claims.judge(mean, error, 10_000, expected, margin=0.3) == verdict


def test_few_seeds_make_less_sure() -> None:
    """Student's t with 1, 2 and 9 degrees of freedom, at the normal's two standard errors."""
    for seeds, errors in ((2, 13.97), (3, 4.53), (10, 2.32)):
        for more, verdict in ((1.01, "agrees"), (0.99, "undecided")):
            assert claims.judge(-more * errors, 1.0, seeds, "better", 0.3) == verdict
    assert claims.judge(-1.0, 0.0, 1, "better", 0.3) == "undecided"


def test_measures_of_a_run() -> None:
    one = row("jes", 0, [0, -1, -2, -2.5, -2.6, -3], [0, 0, -1, -1, -1, -1])
    assert claims.INFERENCE(one) == pytest.approx(-3)
    assert claims.Measure("inference", claims.EARLY)(one) == pytest.approx(-1)
    assert claims.Measure("inference", since=0.4)(one) == pytest.approx(-1)
    assert claims.GAP(one) == pytest.approx(2)
    assert claims.OBSERVED(one) == pytest.approx(1e-3)  # smaller is better


def test_findings_by_hand() -> None:
    behind, ahead, gap, jes, least = (claims.findings(c, GP, ROWS) for c in claims.CLAIMS["gp"])
    (mes,) = behind
    assert (mes.task, mes.seeds, mes.verdict) == ("gp2", 2, "agrees")
    assert mes.mean == pytest.approx(-1)
    assert [found.verdict for found in ahead] == ["disagrees"]
    assert gap[0].mean == pytest.approx(-0.1)
    assert gap[0].verdict == "agrees"
    assert (jes[0].mean, jes[0].verdict) == (pytest.approx(0), "disagrees")  # not less by much
    assert [(f.first, f.verdict) for f in least] == [("jes", "agrees"), ("mes", "agrees")]


def test_a_change_from_task_to_task_is_paired() -> None:
    """JES loses 1.0 and 1.2, MES 0.5 and 0.6; a seed that one of the tasks lacks is left out."""
    noise = experiments.get("noise-levels")
    claim = next(c for c in claims.CLAIMS["noise-levels"] if c.since_task)
    ends = {"jes": ([-3, -3.2], [-2, -2.0]), "mes": ([-1, -1.3], [-0.5, -0.7])}
    made = [
        row(method, seed, [0, end]) | {"task": task}
        for method, both in ends.items()
        for task, found in zip((claim.since_task, *claim.tasks), both, strict=True)
        for seed, end in enumerate(found)
    ]
    made.append(row("jes", 2, [0, 5]) | {"task": claim.since_task})
    (found,) = claims.findings(claim, noise, made)
    assert (found.first, found.second, found.seeds) == ("jes", "mes", 2)
    assert found.mean == pytest.approx((0.5 + 0.6) / 2)


def test_what_is_seen_names_its_pair_and_accuracies_are_as_they_are() -> None:
    text = claims.markdown(GP, ROWS)
    assert "GP 2-D, JES − MES: −1.00 ± 0.00 (2)" in text
    mlp = experiments.get("mlp")
    accurate = [
        row(name, seed, [0, 0]) | {"experiment": "mlp", "task": "hpo-car", "checkpoints": points}
        for name, accuracy in (("jes", 0.9), ("mes", 0.8))
        for seed in (0, 1)
        for points in [{"evaluations": [20], "observed": [accuracy]}]
    ]
    assert "car, JES − MES: +0.1000 ± 0.0000 (2)" in claims.markdown(mlp, accurate)


def test_unequal_seeds_are_not_compared() -> None:
    apart = [row("jes", 0, [0, -2]), row("mes", 1, [0, -1])]
    assert claims.findings(claims.CLAIMS["gp"][0], GP, apart) == []


def test_conclusions() -> None:
    def of(*verdicts: claims.Verdict) -> str:
        return claims.conclusion(
            [claims.Finding("gp2", "a", "b", 9, 0.0, 0.0, v) for v in verdicts]
        )

    assert of() == "not run yet"
    assert of("agrees", "agrees") == "agrees"
    assert of("agrees", "disagrees", "undecided") == "in part: 1 of 3"
    assert of("disagrees", "undecided") == "disagrees where decided: 1 of 2"
    assert of("undecided") == "undecided"
    assert of("better", "equal", "equal") == "better on 1, equal on 2, worse on 0, undecided on 0"
    assert claims.tally(GP, ROWS) == "4 agree, 2 disagree"


def test_claims_are_of_tasks_and_methods_that_are_run() -> None:
    for name, every in claims.CLAIMS.items():
        experiment = experiments.get(name)
        names = {cell.task for cell in experiment.cells}
        for claim in every:
            assert {*claim.tasks, *filter(None, [claim.since_task])} <= names
            assert {m for pair in claim.pairs for m in pair if m} <= set(experiment.methods)
            for pair in claim.pairs:
                for method in filter(None, pair):
                    methods.parse(method)
    assert set(claims.CLAIMS) == {
        e.name for e in experiments.ALL if e.paper and e.name != "pictures"
    }
    assert set(prose.WHY) <= {*experiments.EXPERIMENTS, "runtime", "approximation"}


def test_the_pages_are_what_the_rows_say(tmp_path: Path) -> None:
    append(tmp_path / "results" / "gp.jsonl", *ROWS)
    out = tmp_path / "docs" / "benchmarks.md"
    written = page.write(out, tmp_path / "results")
    names = [*(e.name for e in experiments.ON_PAGE), "runtime", "approximation"]
    assert written == [out, *(out.parent / "experiments" / f"{name}.md" for name in names)]
    own = {path.stem: path.read_text(encoding="utf-8") for path in written}
    assert "| GP 2-D, JES − PES: +0.50 ± 0.00 (2) | **disagrees** |" in own["gp"]
    assert "GP 2-D, JES − PES: −2.55 ± 0.05 (2); GP 2-D, MES − PES: −2.65 ± 0.05 (2)" in own["gp"]
    assert "−2.10 ± 0.10 (−2.10)" in own["gp"]
    assert page.starred(f"**Why.** {prose.WHY['gp']}") in own["gp"]
    text = own["benchmarks"]
    contents = (
        "| [`gp`](experiments/gp.md) | GP 2-D: 2 (of 1000); GP 4-D, GP 6-D: 0 (of 1000); "
        "GP 12-D: 0 (of 250)"
    )
    assert f"{contents} | 6 | 4 agree, 2 disagree |" in text
    assert "All tasks together" not in text  # there is one
    assert sum("**Not run yet.**" in page for page in own.values()) == len(experiments.ON_PAGE)
    assert "| [`mlp`](experiments/mlp.md) | not run yet | 0 |  |" in text
    assert "| [`runtime`](experiments/runtime.md) | | | not run yet |" in text
    assert "| [`approximation`](experiments/approximation.md) | | | 2 agree, 1 disagree |" in text
    for name in names:
        assert own[name].startswith("# ")
        assert f"\nExperiment `{name}`" in own[name]
        assert own[name].endswith("(../benchmarks.md).\n")


def test_figures_are_found_from_every_page() -> None:
    docs = FULL.parents[2] / "docs"
    pages = [docs / "benchmarks.md", *(docs / "experiments").glob("*.md")]
    others = ("the overview", "runtime", "approximation", "answers")
    assert len(pages) == len(experiments.ON_PAGE) + len(others)
    for path in pages:
        for link in re.findall(r"]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / link).exists(), (path, link)


def test_stars_that_are_not_emphasis_are_kept() -> None:
    assert page.starred("f* and x*, **not** `f*`, p(x*)") == r"f\* and x\*, **not** `f*`, p(x\*)"


def test_tasks_are_summed_up_where_there_are_two(tmp_path: Path) -> None:
    other = [one | {"task": "gp4", "dimensions": 4} for one in ROWS]
    append(tmp_path / "gp.jsonl", *ROWS, *other)
    page.write(tmp_path / "page.md", tmp_path)
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "optpair bench summary --to jes" in text
    assert "`optpair`, was not run yet" in text
    assert "over 2 tasks, which weigh equally" in text
    append(tmp_path / "gp.jsonl", *(one | {"method": "optpair"} for one in (ROWS[0], other[0])))
    page.write(tmp_path / "page.md", tmp_path)
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "optpair bench summary\n" in text
    assert "was not run yet" not in text


def test_table_one_beside_ours(tmp_path: Path) -> None:
    asks = [{"seconds": [0.1, 0.3]}, {"seconds": [0.4]}]
    plan = {"plan": {"method": "jes", "beside": ["pes"], "dimensions": 2}, "asks": asks}
    path = tmp_path / page.TABLE1
    path.write_text(json.dumps({"cores": 1, "plans": [plan]}))
    text = page._runtime(path)
    assert "| 2-D, the paper | 1.40 (1) | 17.39 (12) |" in text
    assert "| 2-D, here | 0.20 (1) | 0.40 (2) |" in text
    assert "2 warm asks on one core" in text
    assert "an ask of PES takes 2.0 times one of JES | **disagrees** |" in text
    assert page._runtime(FULL).count("-D, here |") == 3


def test_moment_matching_never_gains_too_much() -> None:
    ratio = measures.approximation_ratio(np.array([1e-3, 0.1, 0.9]), np.array([1e-3, 0.5, 0.9]))
    assert ratio.shape == (3, 3)
    assert np.all((ratio > 0.4) & (ratio <= 1 + 1e-9))
    assert np.all(np.diff(ratio, axis=1) > 0)  # better with more noise


def test_what_is_said_of_moment_matching() -> None:
    ratio = np.array([[0.8, 0.8, 0.9], [0.9, 0.9, 0.95], [0.7, 0.8, 1.0]])
    assert [holds for _, _, holds in page._approximation_claims(ratio)] == [True, True, True]
    worse = np.array([[0.6, 0.6, 0.7], [0.5, 0.5, 0.6], [0.7, 0.8, 1.1]])
    assert [holds for _, _, holds in page._approximation_claims(worse)] == [False, False, False]


def test_peaks_of_a_grid() -> None:
    values = np.array([[5.0, 1, 1, 2], [1, 1, 1, 1], [1, 1, 3, 1]])
    assert measures.local_maxima(values).tolist() == [[0, 0], [2, 2], [0, 3]]


def test_where_a_run_looked() -> None:
    task = tasks.make("branin")
    side = np.linspace(0, 1, 3)
    peaks = np.array([[0.5, 0.5], [0.1, 0.9]])
    land = measures.Landscape(side, np.array([[-10.0] * 3, [-20.0] * 3, [-30.0] * 3]), peaks)
    queries = [[0, 0], [0, 0], [0, 0], [0.5, 0.52], [0.5, 0.6], [0.5, 0.64], [0.9, 0.0]]
    found = measures.looks({"queries": queries, "initial": 3}, land, task)
    assert (found.peaks, found.near) == (1, 0.25)
    assert found.distance == pytest.approx(0.1)
    below = task.value(np.array(queries[3:])) < -20
    assert found.poor == pytest.approx(below.mean())
