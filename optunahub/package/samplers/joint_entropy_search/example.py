"""A noisy function, searched for with Joint Entropy Search from OptunaHub."""

from __future__ import annotations

import random

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """A parabola with its lowest point at 2, and noise."""
    x = trial.suggest_float("x", -5, 5)
    return (x - 2) ** 2 + random.gauss(0, 0.1)


if __name__ == "__main__":
    module = optunahub.load_module("samplers/joint_entropy_search")
    sampler = module.JESSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=20)
    print(sampler.recommend(study))
