"""What cheaper looks save: the regret of recommendations against what they have cost.

A look with the fidelity n of 27 costs n/27, a whole one 1. Every method has so much to spend that
the full search, ours without a fidelity, can make eight trials per dimension; regrets are
noiseless, of what would be recommended at each sixteenth of it. Ours and BoTorch recommend the best
mean at the target, Optuna the best trial that it has seen through to its end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optpair import Fidelity, Float, Optimizer, Space
from optpair.persistence import files
from optpair_bench.tasks.looks import LOOK_TASKS, LookTask

STEPS = 27
LEVELS = (1, 3, 9, 27)
PER_DIMENSION = 8
PARTS = 16
FLOOR = 1e-8

Run = Iterator[tuple[float, Callable[[], np.ndarray | None]]]
"""What was spent so far, and what says what would be recommended then, after each look."""


@dataclass(frozen=True)
class Spent:
    """The regret of recommendations of one search, at each part of what there is to spend."""

    task: str
    method: str
    seed: int
    cost: list[float]
    regret: list[float]
    looks: int


def _noise(task: LookTask, seed: int) -> Callable[[np.ndarray, int], float]:
    """A look at a point: the value at a fidelity, with noise."""
    rng = np.random.default_rng([seed, 77])

    def look(x: np.ndarray, n: int) -> float:
        u = math.log(n) / math.log(STEPS)
        return task.function(x, u) + task.noise * float(rng.standard_normal())

    return look


def _ours(task: LookTask, seed: int, *, looks: bool, acquisition: str = "jes-peak") -> Run:
    names = [f"x{i}" for i in range(task.dimensions)]
    space = {name: Float(0, 1) for name in names}
    fidelity = {"steps": Fidelity(1, STEPS, log=True)} if looks else {}
    optimizer = Optimizer(Space({**space, **fidelity}), seed=seed, acquisition=acquisition)
    look, spent = _noise(task, seed), 0.0
    while True:
        trial = optimizer.ask()
        n = trial.params.get("steps", STEPS)
        optimizer.tell(trial, look(np.array([trial.params[name] for name in names]), n))
        spent += n / STEPS
        yield spent, lambda: _point(optimizer.recommend().params, names)


def _continued(task: LookTask, seed: int) -> Run:
    """Ours, where every trial can be taken up again: a look costs what is beyond the last one."""
    import optuna

    from optpair.integrations.optuna import CONTINUES, COST, JESSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    names = [f"x{i}" for i in range(task.dimensions)]
    space = {name: Float(0, 1) for name in names}
    looks = Space({**space, "steps": Fidelity(1, STEPS, log=True)})
    sampler = JESSampler(seed=seed, search_space=looks, continuable=lambda _: True)
    study, look, spent = optuna.create_study(sampler=sampler), _noise(task, seed), 0.0
    while True:
        trial = study.ask()
        params = {name: trial.suggest_float(name, 0, 1) for name in names}
        n, before = trial.suggest_int("steps", 1, STEPS, log=True), 0
        if CONTINUES in trial.user_attrs:
            before = study.trials[trial.user_attrs[CONTINUES]].params["steps"]
        cost = (n - before) / STEPS
        trial.set_user_attr(COST, cost)
        study.tell(trial, look(_point(params, names), n))
        spent += cost
        yield spent, lambda: _point(sampler.recommend(study).params, names)


def _point(params: Mapping[str, Any], names: list[str]) -> np.ndarray:
    return np.array([params[name] for name in names])


def _hyperband(task: LookTask, seed: int) -> Run:
    """Optuna's TPE with its Hyperband pruner, which goes on from step to step."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruner = optuna.pruners.HyperbandPruner(1, STEPS, 3)
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True)
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    look, spent = _noise(task, seed), 0.0
    names = [f"x{i}" for i in range(task.dimensions)]
    space: dict[str, Any] = {n: optuna.distributions.FloatDistribution(0, 1) for n in names}

    def best() -> np.ndarray | None:
        states = (optuna.trial.TrialState.COMPLETE,)
        ended = study.get_trials(deepcopy=False, states=states)
        values = [math.inf if t.value is None else t.value for t in ended]
        return _point(ended[int(np.argmin(values))].params, names) if ended else None

    while True:
        trial = study.ask(space)
        x, before, pruned = _point(trial.params, names), 0, False
        for n in LEVELS:
            value = look(x, n)
            spent += (n - before) / STEPS
            before = n
            trial.report(value, n)
            pruned = n < STEPS and trial.should_prune()
            if n == STEPS or pruned:
                state = optuna.trial.TrialState.PRUNED if pruned else None
                study.tell(trial, None if pruned else value, state=state)
            yield spent, best
            if pruned:
                break


def _botorch(task: LookTask, seed: int, *, knowledge: bool = False) -> Run:
    """BoTorch's multi-fidelity MES or knowledge gradient, per cost, as in its tutorials.

    The answer is its best mean at the target.
    """
    import torch
    from botorch.acquisition import PosteriorMean
    from botorch.acquisition.cost_aware import InverseCostWeightedUtility
    from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
    from botorch.acquisition.knowledge_gradient import qMultiFidelityKnowledgeGradient
    from botorch.acquisition.max_value_entropy_search import qMultiFidelityMaxValueEntropy
    from botorch.acquisition.utils import project_to_target_fidelity
    from botorch.fit import fit_gpytorch_mll
    from botorch.models.cost import AffineFidelityCostModel
    from botorch.models.gp_regression_fidelity import SingleTaskMultiFidelityGP
    from botorch.models.transforms.outcome import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    d, target = task.dimensions, {task.dimensions: 1.0}
    low, high = torch.zeros(d + 1).double(), torch.ones(d + 1).double()
    low[d] = 1 / STEPS
    bounds = torch.stack([low, high])
    price = AffineFidelityCostModel(fidelity_weights=target, fixed_cost=0.0)
    utility = InverseCostWeightedUtility(cost_model=price)
    look, spent = _noise(task, seed), 0.0
    X, Y = torch.zeros(0, d + 1).double(), torch.zeros(0, 1).double()

    def fitted() -> Any:
        model = SingleTaskMultiFidelityGP(
            X, Y, data_fidelities=[d], outcome_transform=Standardize(1)
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def project(points: Any) -> Any:
        return project_to_target_fidelity(points, target, d + 1)

    def best_mean(model: Any) -> tuple[Any, Any]:
        mean = FixedFeatureAcquisitionFunction(PosteriorMean(model), d + 1, [d], [1.0])
        found: tuple[Any, Any] = optimize_acqf(mean, bounds[:, :d], 1, 4, 256)
        return found

    def best() -> np.ndarray:
        return np.asarray(best_mean(fitted())[0][0].numpy())

    def gain() -> Any:
        model = fitted()
        if knowledge:
            now = best_mean(model)[1]
            return qMultiFidelityKnowledgeGradient(
                model, current_value=now, cost_aware_utility=utility, project=project
            )
        candidates = low + torch.rand(1000, d + 1).double() * (high - low)
        return qMultiFidelityMaxValueEntropy(
            model, candidates, cost_aware_utility=utility, project=project
        )

    while True:
        if len(X) < 2 * (d + 1):
            x = low + torch.rand(d + 1).double() * (high - low)
        else:
            x = optimize_acqf(gain(), bounds, 1, 4, 256)[0][0]
        n = int(min(max(round(float(x[d]) * STEPS), 1), STEPS))
        x[d] = n / STEPS
        value = look(x[:d].numpy(), n)
        X, Y = torch.cat([X, x[None]]), torch.cat([Y, torch.tensor([[-value]]).double()])
        spent += n / STEPS
        yield spent, best


METHODS: Mapping[str, Callable[[LookTask, int], Run]] = {
    "full": lambda task, seed: _ours(task, seed, looks=False),
    "optpair": lambda task, seed: _ours(task, seed, looks=True),
    "continued": _continued,
    "mf-mes": lambda task, seed: _ours(task, seed, looks=True, acquisition="mf-mes"),
    "mf-kg": lambda task, seed: _ours(task, seed, looks=True, acquisition="mf-kg"),
    "tpe-hyperband": _hyperband,
    "botorch-mf-mes": _botorch,
    "botorch-mf-kg": lambda task, seed: _botorch(task, seed, knowledge=True),
}


def search(name: str, method: str, seed: int, parts: int = PARTS) -> Spent:
    """One search, with what it recommends at each part of what there is to spend."""
    task = LOOK_TASKS[name]
    budget = PER_DIMENSION * task.dimensions
    costs: list[float] = []
    regrets: list[float] = []
    for looks, (spent, best) in enumerate(METHODS[method](task, seed), 1):
        while spent >= budget * (len(costs) + 1) / parts - 1e-9 and len(costs) < parts:
            x = best()
            worst = task.function(np.full(task.dimensions, 0.5), 1.0)
            found = worst if x is None else task.function(x, 1.0)
            costs.append(round(spent, 4))
            regrets.append(found - task.best)
        if len(costs) == parts:
            return Spent(name, method, seed, costs, regrets, looks)
    raise AssertionError("a search does not end by itself")


def measure(
    searches: int, out: Path, methods: list[str], tasks: list[str], *, first: int = 0
) -> list[Spent]:
    """Searches with seeds from `first` on; those that the file has are not done again."""
    rows = read(out) if out.exists() else []
    done = {(row.task, row.method, row.seed) for row in rows}
    for seed in range(first, first + searches):
        for name in tasks:
            for method in methods:
                if (name, method, seed) not in done:
                    rows = [*(read(out) if out.exists() else []), search(name, method, seed)]
                    files.write(out, "".join(json.dumps(asdict(row)) + "\n" for row in rows))
    return rows


def read(path: Path) -> list[Spent]:
    """The rows of a JSON lines file."""
    return [Spent(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def logs(rows: list[Spent], task: str, method: str) -> np.ndarray:
    """log10 regrets (searches, parts), in the order of the seeds."""
    own = sorted((r for r in rows if (r.task, r.method) == (task, method)), key=lambda r: r.seed)
    return np.log10(np.maximum([row.regret for row in own], FLOOR))


def cost_to_reach(rows: list[Spent], task: str, method: str, other: str = "full") -> float:
    """The share of all that there is to spend at which the mean log regret is what another ends at.

    Infinite where it is not reached; between two parts, on the line between them.
    """
    goal = float(np.mean(logs(rows, task, other)[:, -1]))
    mean = np.mean(logs(rows, task, method), axis=0)
    reached = np.flatnonzero(mean <= goal)
    if len(reached) == 0:
        return math.inf
    i = int(reached[0])
    if i == 0:
        return 1 / len(mean)
    way = (mean[i - 1] - goal) / (mean[i - 1] - mean[i])
    return float((i + way) / len(mean))


def table(rows: list[Spent]) -> str:
    """One line per task: the cost to reach what the full search ends at, as a share of its own."""
    methods = [m for m in METHODS if any(row.method == m for row in rows)]
    lines = [f"{'':12}{'searches':>10}{'full ends at':>18}" + "".join(f"{m:>16}" for m in methods)]
    for task in LOOK_TASKS:
        ends = logs(rows, task, "full")
        if len(ends) == 0:
            continue
        error = np.std(ends[:, -1], ddof=1) / math.sqrt(len(ends)) if len(ends) > 1 else math.nan
        shown = f"{np.mean(ends[:, -1]):.2f} ± {error:.2f}"
        cells = "".join(f"{_cell(rows, task, m):>16}" for m in methods)
        lines.append(f"{task:12}{len(ends):>10}{shown:>18}{cells}")
    return "\n".join(lines)


def markdown(rows: list[Spent]) -> list[str]:
    """Mean log10 regrets at a quarter, at half and at the end of what there is to spend."""
    methods = [m for m in METHODS if any(row.method == m for row in rows)]
    lines = [f"| task | parameters | {' | '.join(methods)} |", "|---" * (2 + len(methods)) + "|"]
    for task in LOOK_TASKS:
        cells = " | ".join(_regrets(logs(rows, task, m)) for m in methods)
        lines.append(f"| {task} | {LOOK_TASKS[task].dimensions} | {cells} |")
    return lines


def reached(rows: list[Spent]) -> list[str]:
    """Where `optpair` and `continued` reach what the full search and the peers end at."""
    lines = [f"| reaches at … of the cost | {' | '.join(LOOK_TASKS)} |"]
    lines.append("|---" * (1 + len(LOOK_TASKS)) + "|")
    for method in ("optpair", "continued"):
        for other in ("full", "tpe-hyperband", "botorch-mf-mes", "botorch-mf-kg"):
            cells = []
            for task in LOOK_TASKS:
                both = all(
                    any((r.task, r.method) == (task, m) for r in rows) for m in (method, other)
                )
                cells.append(_cell(rows, task, method, other) if both else "")
            if any(cells):
                lines.append(f"| {method}, what {other} ends at | {' | '.join(cells)} |")
    return lines


def _regrets(found: np.ndarray) -> str:
    if len(found) == 0:
        return ""
    mean, parts = found.mean(0), found.shape[1]
    return " / ".join(f"{mean[parts * k // 4 - 1]:.2f}".replace("-", "−") for k in (1, 2, 4))


def _cell(rows: list[Spent], task: str, method: str, other: str = "full") -> str:
    if not any((row.task, row.method) == (task, method) for row in rows):
        return ""
    share = cost_to_reach(rows, task, method, other)
    return "not reached" if math.isinf(share) else f"{share:.2f}"
