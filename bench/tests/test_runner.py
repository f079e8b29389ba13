"""Runs by their definition; the runner goes on after a kill, shares a file, has a cluster."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import optpair
from optpair.engine.settings import Settings
from optpair.gp import RBF
from optpair_bench import methods, tasks
from optpair_bench.methods import catalogue as catalogue_of_methods
from optpair_bench.methods import peers
from optpair_bench.running import experiments, rows, runner, runs
from optpair_bench.running.runs import Run
from optpair_bench.tasks import catalogue, joint, packages, spaces

QUIET = Console(quiet=True)
LATTICE = Run("synthetic", "branin@0.01", "lattice", 0, 6)
SMALL = "logei:pairs=2,features=512,candidates=32,starts=1"


def test_a_run_of_a_control_by_hand() -> None:
    row = runs.run(LATTICE)
    task = tasks.make("branin@0.01", 0)
    method = methods.Control(task, "lattice")
    X = np.vstack([task.initial(3), [method.ask() for _ in range(6)]])
    y = np.array([task.observe(x, i) for i, x in enumerate(X)])
    f = task.value(X)
    at = [row["checkpoints"]["evaluations"].index(n) for n in (0, 6)]
    for index, told in zip(at, (3, 9), strict=True):
        found = {name: numbers[index] for name, numbers in row["checkpoints"].items()}
        assert found["simple"] == pytest.approx(task.optimum.f - f[:told].max(), rel=1e-4)
        assert found["observed"] == pytest.approx(y[:told].max(), rel=1e-4)
        regret = task.optimum.f - f[np.argmax(y[:told])]
        assert found["inference"] == pytest.approx(regret, rel=1e-4)
    assert row["recommends"] == "best observed"
    assert row["settings"] is None
    assert row["noise_var"] == 0.01
    assert {"optpair", "engine", "numpy", "python"} <= set(row["versions"])


def test_a_run_of_the_library() -> None:
    row = runs.run(Run("gp", "gp2", SMALL, 0, 2))
    assert row["checkpoints"]["evaluations"] == [0, 1, 2]
    assert min(row["checkpoints"]["inference"]) >= 0
    assert (row["model"], row["settings"]["candidates"]) == ("known", 32)
    assert row["ask_seconds"]["total"] > 0


@pytest.fixture
def packaged(monkeypatch: pytest.MonkeyPatch) -> tasks.Task:
    """A task of `answers` in 3-D whose function is at hand without its package."""
    bowl = packages.Packaged(
        lambda X: np.sum((X - 0.3) ** 2, -1), np.zeros(3), np.ones(3), 0.5, np.full(3, 0.3)
    )
    monkeypatch.setattr(catalogue, "find_spec", lambda name: True)
    monkeypatch.setattr(packages, "load", lambda name: bowl)
    runs._task.cache_clear()
    return tasks.make("opf-levy-3@20%", 4)


def test_methods_with_a_start_of_their_own(packaged: tasks.Task) -> None:
    """Budgets count all evaluations, and are read at 2, 5, 10 and 20 a dimension."""
    row = runs.run(Run("answers", packaged.name + "@20%", "random", 4, 60))
    method = methods.Control(packaged, "random")
    X = np.array([method.ask() for _ in range(60)])
    y = np.array([packaged.observe(x, i) for i, x in enumerate(X)])
    assert row["initial"] == 0
    assert row["checkpoints"]["evaluations"] == [6, 15, 30, 60]
    regrets = [-packaged.value(X[[np.argmax(y[:n])]])[0] for n in (6, 15, 30, 60)]
    np.testing.assert_allclose(row["checkpoints"]["inference"], regrets, rtol=1e-4)
    short = runs.run(Run("answers", packaged.name + "@20%", "random", 4, 8))
    assert short["checkpoints"]["evaluations"] == [6, 8]


def test_ours_has_the_default_start_in_answers(packaged: tasks.Task) -> None:
    for method, changed in (("optpair", {}), ("optpair:exploit=0", {"exploit": 0}), ("logei", {})):
        _, chosen = Run("answers", packaged.name + "@20%", method, 4, 60).setup()
        assert (chosen.model, chosen.settings) == ("marginal", Settings(**changed))
    search = methods.make(chosen, packaged)
    points = [search.ask()]
    search.tell(points[0], 0.0)
    assert search.recommend().shape == (3,)


class Dice:
    """A peer that keeps what it was built with."""

    def __init__(self, X: np.ndarray, y: np.ndarray, about: peers.About) -> None:
        self.X, self.about = X, about

    def ask(self) -> np.ndarray:
        return np.full(3, 0.5)

    def tell(self, x: np.ndarray, y: float) -> None:
        pass


def test_a_peer_begins_by_itself(packaged: tasks.Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "METHODS", {"optuna-gp": Dice})
    _, chosen = Run("answers", packaged.name + "@20%", "optuna-gp", 4, 60).setup()
    method = methods.make(chosen, packaged, 60)
    method.ask()
    assert isinstance(method, catalogue_of_methods.Other)
    assert isinstance(method.peer, Dice)
    assert method.peer.X.shape == (0, 3)
    assert (method.peer.about.evaluations, method.peer.about.seed) == (60, 4)


@pytest.mark.parametrize(
    ("name", "package", "design"),
    [
        ("optuna-gp", "torch", 10),
        ("optuna-tpe-group", "optuna", 10),
        ("botorch-lognei", "botorch", 6),
        ("smac-rf", "smac", 6),
    ],
)
def test_peers_with_a_start_of_their_own(name: str, package: str, design: int) -> None:
    """Points of the cube, all different; another seed has others."""
    pytest.importorskip(package)
    built = [
        peers.METHODS[name](np.empty((0, 3)), np.empty(0), peers.About(seed, evaluations=24))
        for seed in (0, 1)
    ]
    X = np.empty((2, design, 3))
    for i in range(design):
        for j, peer in enumerate(built):
            X[j, i] = peer.ask()
            peer.tell(X[j, i], 0.0)
    assert X.min() >= 0
    assert X.max() <= 1
    assert len(np.unique(X.reshape(-1, 3), axis=0)) == 2 * design


def test_smac_takes_no_points() -> None:
    with pytest.raises(ValueError, match="run it on answers only"):
        peers.SmacRF(np.zeros((1, 2)), np.zeros(1), peers.About(evaluations=5))


def test_users_budgets() -> None:
    cells = {c.task: c.evaluations for c in experiments.get("answers").cells}
    assert cells["opf-levy-3@0%"] == 60
    assert cells["opf-levy-5@5%"] == 100
    assert cells["opf-levy-10@20%"] == 100
    assert cells["opf-levy-20@5%"] == 100
    assert cells["opf-levy-50@5%"] == 250
    tuning = {c.task for c in experiments.get("answers-tuning").cells}
    assert not tuning & set(cells)


def test_methods_of_a_repetition_begin_alike() -> None:
    first, second = (
        runs.run(Run("synthetic", "branin@0.01", name, 3, 1)) for name in ("lattice", "random")
    )
    for kind in ("inference", "simple", "observed"):
        assert first["checkpoints"][kind][0] == second["checkpoints"][kind][0]


def setting(experiment: str, task: str, method: str) -> tuple[str, Settings]:
    _, chosen = Run(experiment, task, method, 0, 1).setup()
    return chosen.model, chosen.settings


def test_the_paper_protocol() -> None:
    model, known = setting("gp", "gp4", "jes")
    assert (model, known.kernel, known.pairs, known.exploit) == ("known", RBF(), 100, 0.0)
    assert known.initial == 5
    model, marginal = setting("synthetic", "hartmann6@0.01", "pes")
    assert (model, marginal.sets, marginal.pairs, marginal.exploit) == ("marginal", 20, 5, 0.0)
    assert marginal.refresh_every == 10
    jes = setting("synthetic", "branin@0.01", "jes")[1]
    assert (jes.refresh_every, jes.exploit) == (5, 0.1)  # γ is that of JES
    assert setting("misspecified", "levy@0.01", "mes:exploit=0.1")[1].exploit == 0.1
    assert setting("gamma", "branin@0.01", "jes:exploit=0.05")[1].exploit == 0.05
    budgets = {c.task: c.evaluations for c in experiments.get("gp-noisy").cells}
    assert budgets == {"gp2@4": 250, "gp4@4": 500}
    assert [c.evaluations for c in experiments.get("gp").cells] == [100, 200, 300, 600]


def test_the_default_method_has_the_default_settings() -> None:
    model, found = setting("gp", "gp2", "optpair")
    assert model == "marginal"
    assert found == Settings(initial=3)
    _, paper = setting("gp", "gp2", "jes")
    assert (paper.repeat, paper.focus) == (False, False)


@pytest.mark.parametrize("experiment", list(experiments.EXPERIMENTS))
def test_every_experiment_is_whole(experiment: str) -> None:
    chosen = experiments.get(experiment)
    for cell in chosen.cells:
        plain = cell.task.partition("@")[0]
        rooms = {"joint": plain in joint.REGISTRY, "spaces": spaces.known(plain)}
        assert any(rooms.values()) or plain in tasks.REGISTRY
        if not plain.startswith(("hpo-", "opf-", "uq-", "shelf-")):
            room = joint if rooms["joint"] else spaces if rooms["spaces"] else tasks
            task = room.make(cell.task)
            assert task.dimensions == experiments.dimensions(cell.task)
        for name in chosen.methods:
            methods.parse(name)
    assert experiments.schedule(chosen.cells[0].evaluations)[-1] == chosen.cells[0].evaluations


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jess", "method must be one of optpair, jes"),
        ("jes:pears=3", "changes 'pears'"),
        ("lattice:pairs=3", "no settings"),
    ],
)
def test_nonsense_methods(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        methods.parse(text)


def test_a_peer_begins_as_the_others_and_is_told_what_it_asked_for() -> None:
    pytest.importorskip("optuna")
    row = runs.run(Run("synthetic", "branin@0.01", "optuna-tpe", 0, 8))
    ours = runs.run(Run("synthetic", "branin@0.01", "lattice", 0, 8))
    assert row["recommends"] == "best observed"
    assert "optuna" in row["versions"]
    first, last = (row["checkpoints"]["simple"][i] for i in (0, -1))
    assert first == ours["checkpoints"]["simple"][0]
    assert last < first  # its own points count
    assert last != ours["checkpoints"]["simple"][-1]


def test_a_peer_on_levels() -> None:
    pytest.importorskip("optuna")
    X = np.array([[0.0, 4 / 9], [1.0, 1 / 9]])
    peer = peers.OptunaTPE(X, np.array([0.1, 0.2]), peers.About(seed=1, levels=10))
    for _ in range(3):
        x = peer.ask()
        np.testing.assert_allclose(9 * x, np.rint(9 * x), atol=1e-12)
        peer.tell(x, 0.5)
    told = [trial.params for trial in peer._study.trials]
    assert told[0] == {"x0": 0, "x1": 4}
    assert len(told) == 5


def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(ValueError, match="botorch-jes needs torch: make peers"):
        runner.Plan("gp", methods=("botorch-jes",)).runs()
    assert runner.Plan("gp", methods=("optuna-tpe",)).runs()


def test_plans() -> None:
    plan = runner.Plan("gp", dims=(2, 12), methods=("jes", "lattice", "jes"), repetitions=2)
    found = [(r.task, r.method, r.seed, r.evaluations) for r in plan.runs()]
    assert len(found) == 8
    assert found[:3] == [
        ("gp2", "jes", 0, 100),
        ("gp2", "lattice", 0, 100),
        ("gp12", "jes", 0, 600),
    ]
    paper = runner.Plan("gp", methods=("jes",), paper=True).runs()
    assert sum(r.task == "gp12" for r in paper) == 250
    assert sum(r.task == "gp2" for r in paper) == 1000
    with pytest.raises(ValueError, match="none of \\[3\\]"):
        runner.Plan("gp", dims=(3,)).runs()
    with pytest.raises(ValueError, match="tasks of gp are gp2"):
        runner.Plan("gp", tasks=("branin",)).runs()
    with pytest.raises(ValueError, match="not in the paper"):
        runner.Plan("live", paper=True).runs()


def test_what_is_on_file_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "rows.jsonl"
    first = runner.benchmark([LATTICE], out, console=QUIET)
    monkeypatch.setattr(runner, "_local", lambda workers: pytest.fail("a worker was started"))
    assert runner.benchmark([LATTICE], out, console=QUIET) == first
    assert len(out.read_text().splitlines()) == 2  # one of them is what runs share


def test_rows_of_other_settings_or_engines_are_counted(tmp_path: Path) -> None:
    spec = Run("gp", "gp2", SMALL, 0, 2)
    made = {**vars(spec), "checkpoints": {}, "seconds": 1.0, "initial": 3}
    now = runs.settings(spec.setup()[1])
    here = {"engine": runs.engine()}
    for i, (settings, versions, outdated) in enumerate(
        [(now | {"pairs": 3}, here, 1), (now, {"engine": "other"}, 1), (now, {}, 1), (now, here, 0)]
    ):
        file = tmp_path / f"{i}.jsonl"
        rows.append(file, made | {"settings": settings, "versions": versions})
        assert runner.benchmark([spec], file, console=QUIET).outdated == outdated


def test_the_engine_s_digest_follows_its_code_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shells = ("optimizer", "cli/app", "report/page", "studies/worker")
    rooms = ("problem/space", "trials/data", "gp/kernels/radial", "cube/climb", "optima/single")
    parts = (*runs.ALONE, *rooms, "gp/posterior", "acquisition/special/normal", "engine/step")
    source, home = Path(optpair.__file__).parent, tmp_path / "optpair"
    for name in (*shells, *parts):
        path = Path(name).with_suffix(".py")
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / path, home / path)
    monkeypatch.setattr(optpair, "__file__", str(home / "__init__.py"))

    def digest(change: str, text: str) -> str:
        path = home / change
        before = path.read_text(encoding="utf-8")
        path.write_text(before + text, encoding="utf-8")
        found = runs.engine.__wrapped__()
        path.write_text(before, encoding="utf-8")
        return found

    same = runs.engine.__wrapped__()
    assert digest("gp/posterior.py", "# a comment\n") == same
    for shell in shells:
        assert digest(f"{shell}.py", "x = 1\n") == same
    for part in parts:
        assert digest(str(Path(part).with_suffix(".py")), "x = 1\n") != same


def test_a_failing_run_fails_alone(tmp_path: Path) -> None:
    bad = Run("synthetic", "nowhere", "lattice", 0, 2)
    outcome = runner.benchmark([bad, LATTICE], tmp_path / "rows.jsonl", console=QUIET)
    assert [row["task"] for row in outcome.rows] == ["branin@0.01"]
    assert "nowhere" in outcome.failed[bad.key]


def test_two_runners_share_a_file_and_one_is_killed(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    command = [sys.executable, "-m", "optpair_bench.cli", "run", "synthetic", "--out", str(out)]
    command += ["--methods", "lattice", "random", "--tasks", "branin@0.01"]
    command += ["--repetitions", "40", "--evaluations", "3"]
    one, two = (subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(2))
    for _ in range(6000):
        if len(rows.read(out)) > 3:
            break
        time.sleep(0.02)
    os.kill(one.pid, signal.SIGKILL)
    one.wait(10)
    assert 3 < len(rows.read(out)) < 80
    assert two.wait(120) == 0
    plan = runner.Plan("synthetic", ("branin@0.01",), (), ("lattice", "random"), 40, 0, 3)
    assert set(rows.read(out)) == {spec.key for spec in plan.runs()}
    # None twice, but for a line that the kill cut off; and what the runs of a method share.
    assert out.read_text().count("\n") <= 83


def test_a_cluster(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    specs = [Run("synthetic", "branin@0.01", "lattice", seed, 3) for seed in range(4)]
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        outcome = runner.benchmark(specs, tmp_path / "r.jsonl", scheduler=address, console=QUIET)
    assert [row["seed"] for row in outcome.rows] == [0, 1, 2, 3]
    alone = runs.run(specs[2])
    assert outcome.rows[2]["checkpoints"] == alone["checkpoints"]


def test_no_scheduler_there(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(ValueError, match="no Dask scheduler answers"):
        runner.benchmark([LATTICE], tmp_path / "r.jsonl", scheduler="nowhere://x", console=QUIET)


def test_time_left_is_from_runs_like_those_to_come() -> None:
    row = {"task": "gp2", "method": "jes", "seconds": 26.0, "evaluations": 10, "initial": 3}
    estimate = runner.Estimate([row])
    same, other = Run("gp", "gp2", "jes", 1, 10), Run("gp", "gp4", "mes", 1, 20)
    assert estimate.left([same] * 4, workers=2) == "about 40 s left"
    assert estimate.left([same, other], workers=1) == "very roughly 60 s left"
    assert estimate.left([same], workers=1, running=[same]) == "about 30 s left"
    assert estimate.left([], workers=1) == ""
    assert runner.Estimate([]).left([same], 1) == "time left unknown"
