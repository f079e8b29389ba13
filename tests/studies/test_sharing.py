"""Workers that share a storage keep away from each other's running trials."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.storages import RDBStorage

from optpair import Settings
from optpair.integrations.optuna.model import StudyModel
from optpair.integrations.optuna.sampler import JESSampler
from optpair.trials.data import Data

SPACE: dict[str, BaseDistribution] = {
    "a": FloatDistribution(-1.0, 1.0),
    "b": CategoricalDistribution(["u", "v"]),
}


def spread(url: str, name: str) -> float:
    """Eight workers ask before anyone has told: the mean distance to the nearest other's point."""
    settings = Settings(
        sets=6, pairs=4, features=64, candidates=64, path_candidates=64, starts=2, steps=4,
        moves=2, exploit=0.0,
    )  # fmt: skip
    stores = [RDBStorage(url) for _ in range(8)]
    optuna.create_study(study_name=name, storage=stores[0])
    workers = [
        optuna.load_study(
            study_name=name,
            storage=store,
            sampler=JESSampler(seed=0, search_space=SPACE, settings=settings),
        )
        for store in stores
    ]
    for a in np.linspace(-1, 1, 8):
        workers[0].add_trial(
            optuna.create_trial(
                params={"a": float(a), "b": "u"}, distributions=SPACE, value=float((a - 0.3) ** 2)
            )
        )
    points = [study.ask(SPACE).params for study in workers]
    for store in stores:
        store.engine.dispose()
    a = np.array([point["a"] for point in points])
    b = np.array([point["b"] == "v" for point in points])
    distance = np.hypot((a[:, None] - a) / 2, b[:, None] ^ b) + 9 * np.eye(8)
    return float(distance.min(axis=1).mean())


def test_workers_keep_away_from_each_others_running_trials(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    apart = spread(postgres, "seeing")
    seeing = StudyModel.data

    def blind(model: StudyModel, *args: Any, **options: Any) -> Data:
        data = seeing(model, *args, **options)
        return replace(data, pending=data.pending[:0])

    monkeypatch.setattr(StudyModel, "data", blind)
    assert apart > 1.5 * spread(postgres, "blind")
