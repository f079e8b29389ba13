"""What pruning saves: studies of scikit-learn models in Optuna, whole and pruned.

Both have the same sampler, seed and number of trials; a fit is one step, a fold or an epoch. The
recommendation's prediction is compared with what the point is worth, the mean of whole trials with
other seeds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from optpair.persistence import files
from optpair_bench.tasks.pruned import FIRST_SEED, PRUNED_TASKS

METHODS = ("whole", "pruned", "running means")
"""The last is pruned, too, and the sampler is told that steps are running means, where they are."""


@dataclass(frozen=True)
class Study:
    """One study: how many fits it took, what it recommends and promises, and what that keeps."""

    task: str
    method: str
    seed: int
    fits: int
    params: dict[str, float]
    mean: float
    low: float
    high: float
    keeps: float


def study(name: str, method: str, seed: int) -> Study:
    """Run a study once."""
    import optuna

    from optpair.integrations.optuna import JESPruner, JESSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    task, fits = PRUNED_TASKS[name], 0
    pruner = optuna.pruners.NopPruner() if method == "whole" else JESPruner()
    sampler = JESSampler(seed=seed, running_means=method == "running means")
    made = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)

    def objective(trial: optuna.Trial) -> float:
        nonlocal fits
        params = {n: trial.suggest_float(n, *ends, log=True) for n, ends in task.bounds.items()}
        own = FIRST_SEED * (seed + 1) + trial.number
        value = 0.0
        for step, value in enumerate(task.train(params, own)):
            fits += 1
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    made.optimize(objective, n_trials=task.trials)
    best = sampler.recommend(made)
    params = {n: float(v) for n, v in best.params.items()}
    low, high = best.interval
    return Study(name, method, seed, fits, params, best.mean, low, high, task.worth(params))


def measure(studies: int, out: Path, tasks: Sequence[str], *, first: int = 0) -> list[Study]:
    """Studies with seeds from `first` on; those that the file has are not done again."""
    rows = read(out) if out.exists() else []
    done = {(row.task, row.method, row.seed) for row in rows}
    for seed in range(first, first + studies):
        for name in tasks:
            for method in METHODS if PRUNED_TASKS[name].means else METHODS[:2]:
                if (name, method, seed) not in done:
                    rows = [*(read(out) if out.exists() else []), study(name, method, seed)]
                    files.write(out, "".join(json.dumps(asdict(row)) + "\n" for row in rows))
    return rows


def read(path: Path) -> list[Study]:
    """The rows of a JSON lines file."""
    return [Study(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


class Summary(NamedTuple):
    """Of the studies of one task by one method; errors are standard errors."""

    studies: int
    fits: float
    """A share of the fits of whole studies."""
    keeps: float
    promised: float
    """What the prediction is above what the point keeps,"""
    error: float
    held: int
    """and how many intervals hold that."""
    better: float
    """What the answer is worth more than that of the whole study with the same seed."""
    sure: float


def summaries(rows: Sequence[Study]) -> Mapping[tuple[str, str], Summary]:
    """One for each task and method."""
    by = {(row.task, row.method, row.seed): row for row in rows}
    found = {}
    for name, task in PRUNED_TASKS.items():
        for method in METHODS:
            own = [row for row in rows if (row.task, row.method) == (name, method)]
            own = [row for row in own if (name, METHODS[0], row.seed) in by]
            if not own:
                continue
            over = np.array([row.mean - row.keeps for row in own])
            more = np.array([row.keeps - by[name, METHODS[0], row.seed].keeps for row in own])
            root = max(len(own) - 1, 1) ** 0.5
            found[name, method] = Summary(
                len(own),
                float(np.mean([row.fits for row in own])) / (task.trials * task.steps),
                float(np.mean([row.keeps for row in own])),
                float(over.mean()),
                float(over.std() / root),
                sum(row.low <= row.keeps <= row.high for row in own),
                float(more.mean()),
                float(more.std() / root),
            )
    return found


def markdown(rows: Sequence[Study]) -> list[str]:
    """A table."""
    head = ("task", "studies", "fits", "accuracy kept", "promised − kept", "intervals that hold")
    lines = [f"| {' | '.join(head)} | to whole |", "|---|---|---|---|---|---|---|"]
    for (task, method), s in summaries(rows).items():
        to = "" if method == METHODS[0] else f"{s.better:+.4f} ± {s.sure:.4f}"
        cells = [f"{task}, {method}", f"{s.studies}", f"{s.fits:.2f}", f"{s.keeps:.4f}"]
        cells += [f"{s.promised:+.4f} ± {s.error:.4f}", f"{s.held} of {s.studies}", to]
        lines.append(f"| {' | '.join(cells)} |".replace("-", "−").replace("|  |", "| |"))
    return lines
