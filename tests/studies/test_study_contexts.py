"""Studies with contexts: what is given with every trial, and never chosen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from optpair import Context, Float, Optimizer, Settings, Space
from optpair.integrations.optuna.private import ask_with
from optpair.studies.config import StudyError, load
from optpair.studies.samplers import make_sampler
from optpair.studies.spaces import StudySpace
from optpair.studies.storage import open_study
from shell_cases import TINY
from study_cases import run, shown, study_file

SITES = """
[space]
x = { float = [0, 1] }
site = { categories = ["A", "B"], role = "context" }
heat = { float = [1, 100], log = true, role = "context" }
"""
CODE = "def f(p):\n    return (p['x'] - {'A': 0.2, 'B': 0.8}[p['site']]) ** 2 + 0 * p['heat']\n"
A, B = ["--context", "site=A", "--context", "heat=10"], ["--context", '{"site": "B", "heat": 10}']


def write(folder: Path, text: str = "", evaluations: int = 14, space: str = SITES) -> Path:
    tiny = "\n".join(f"{name} = {json.dumps(value)}" for name, value in TINY.items())
    (folder / "sited.py").write_text(CODE, encoding="utf-8")
    path = folder / "study.toml"
    path.write_text(
        f"[study]\nevaluations = {evaluations}\n{text}\n[objective]\npython = 'sited:f'\n{space}"
        f"[settings]\n{tiny}\n",
        encoding="utf-8",
    )
    return path


def test_runs_and_answers_are_for_a_context(tmp_path: Path) -> None:
    path = write(tmp_path, evaluations=8)
    found = shown("run", path, *A)
    assert found["recommendation"]["params"]["site"] == "A"
    write(tmp_path, evaluations=16)
    assert shown("run", path, *B)["recommendation"]["params"]["site"] == "B"
    rows = shown("export", path)
    assert [row["params"]["site"] for row in rows] == ["A"] * 8 + ["B"] * 8
    assert {row["params"]["heat"] for row in rows} == {10.0}
    for words, site, best in ((A, "A", 0.2), (B, "B", 0.8)):
        found = shown("recommend", path, *words)
        assert found["params"] | {"x": 0} == {"x": 0, "site": site, "heat": 10.0}
        assert found["params"]["x"] == pytest.approx(best, abs=0.15)
    new = shown("recommend", path, "--context", "site=A", "--context", "heat=90")  # never tried
    assert new["params"]["heat"] == 90.0


def test_a_study_knows_what_the_optimizer_knows(tmp_path: Path) -> None:
    path = write(tmp_path)
    sites = {"site": Context(["A", "B"]), "heat": Context(1, 100, log=True)}
    space = Space({"x": Float(0, 1), **sites})
    own = Optimizer(space, seed=0, settings=Settings(**TINY))
    for i in range(6):
        params = {"x": (0.1 + 0.37 * i) % 1, "site": "AB"[i % 2], "heat": 10.0}
        shown("tell", path, "--params", json.dumps(params), params["x"] ** 2)
        own.tell(params, params["x"] ** 2)
    found, best = shown("recommend", path, *B), own.recommend(context={"site": "B", "heat": 10})
    assert (found["params"], found["mean"]) == (best.params, best.mean)
    asked = [trial["params"] for trial in shown("ask", path, *A, "--n", 2)]
    assert all(params["site"] == "A" and params["heat"] == 10.0 for params in asked)
    assert asked[0]["x"] != asked[1]["x"]
    told = shown("tell", path, 6, 0.5)
    assert told["params"] == asked[0]


def test_pages_are_for_the_last_context_or_another(tmp_path: Path) -> None:
    path = write(tmp_path)
    for i in range(6):
        shown("tell", path, "--params", json.dumps({"x": i / 5, "site": "AB"[i % 2], "heat": 3}), i)
    assert shown("report", path)["recommendation"]["params"]["site"] == "B"
    assert shown("report", path, *A)["recommendation"]["params"]["site"] == "A"


def test_workers_are_told_the_context(tmp_path: Path) -> None:
    path = write(tmp_path, "sampler = 'random'", evaluations=4)
    shown("run", path, *B, "--workers", 2)
    told = [row for row in shown("export", path) if row["state"] == "told"]  # none in surplus
    assert len(told) == 4
    assert {row["params"]["site"] for row in told} == {"B"}


def test_no_worker_gets_the_trial_of_another_context(tmp_path: Path) -> None:
    file = load(write(tmp_path))
    study = open_study(file, make_sampler(file))
    study.enqueue_trial({"site": "B", "heat": 5.0})  # somebody else's
    trial = ask_with(study, {"site": "A", "heat": 10.0})
    assert trial.number == 1
    assert trial.suggest_categorical("site", ["A", "B"]) == "A"
    assert study.ask().suggest_categorical("site", ["A", "B"]) == "B"


def test_an_early_end_is_for_the_context(tmp_path: Path) -> None:
    path = write(tmp_path, "[stop]\ngap = 10.0", evaluations=30)
    found = shown("run", path, *A)
    assert found["over"]
    assert len(shown("export", path)) < 30


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--context lacks site, heat: what is given with every trial must be said"),
        (["--context", "site=A"], "--context lacks heat"),
        (["--context", "site=C", "--context", "heat=3"], "site must be one of A, B, not 'C'"),
        (["--context", "site=A", "--context", "heat=300"], "heat must be a number from 1 to 100"),
        (["--context", "site=A", "--context", "heat=nan"], "heat must be a number from 1 to 100"),
        ([*A, "--context", "x=1"], "--context has 'x', which is chosen and not given"),
        ([*A, "--context", "place=1"], "--context has 'place'; [space] has site, heat"),
        ([*A, "--context", "site=B"], "--context gives 'site' twice"),
        (["--context", "site"], "--context must be like name=value, or a JSON object"),
        (["--context", "{site"], "is not JSON"),
    ],
)
def test_contexts_that_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    path = write(tmp_path)
    shown("tell", path, "--params", '{"x": 0.5, "site": "A", "heat": 3}', 1.0)
    for command in ("ask", "run", "recommend"):
        code, _, said = run(command, path, *words)
        assert code == 1
        assert message in said
    assert len(shown("export", path)) == 1  # nothing was asked for


def test_a_study_without_contexts_takes_none(tmp_path: Path) -> None:
    path = write(tmp_path, space="[space]\nx = { float = [0, 1] }\n")
    code, _, said = run("ask", path, *A)
    assert code == 1
    assert "--context is given, but [space] has no context" in said
    code, _, said = run("report", tmp_path / "any.json", *A)
    assert (code, "--context is for a study file" in said) == (2, True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("categories = ['A', 'B'], role = 'given'", "role must be 'context', of what is given"),
        ("int = [1, 9], role = 'context'", "goes with categories = […] or float = [low, high]"),
        ("float = [1, 9], step = 1, role = 'context'", "without a step"),
        ("ordinal = [1, 9], role = 'context'", "goes with categories"),
        ("fidelity = [1, 9], role = 'context'", "goes with categories"),
        (
            "float = [1, 9], guess = 3, role = 'context'",
            "which is given and not chosen: leave out guess",
        ),
        ("float = [1, 1], role = 'context'", "goes with categories"),
    ],
)
def test_roles_that_are_refused(tmp_path: Path, line: str, message: str) -> None:
    space = f"[space]\nx = {{ float = [0, 1] }}\nc = {{ {line} }}\n"
    with pytest.raises(StudyError) as refused:
        study_file(tmp_path, space=space)
    assert message in str(refused.value)
    alone = "[space]\nc = { categories = ['A', 'B'], role = 'context' }\n"
    with pytest.raises(StudyError, match="has nothing to tune"):
        study_file(tmp_path, space=alone)


def test_another_role_is_another_space(tmp_path: Path) -> None:
    shown("ask", write(tmp_path), *A)
    code, _, said = run("ask", write(tmp_path, space=SITES.replace(', role = "context"', "")))
    assert code == 1
    assert 'site is { categories = ["A", "B"], role = "context" } there and' in said


def test_what_a_file_says_of_contexts(tmp_path: Path) -> None:
    space = study_file(tmp_path, space=SITES).space
    assert isinstance(space, StudySpace)
    assert space.contexts == ("site", "heat")
    assert space.parameters["site"] == Context(["A", "B"])
    assert space.parameters["heat"] == Context(1, 100, log=True)
