"""Ray Tune runs the trials, optpair chooses them: `OptunaSearch` takes any Optuna sampler.

    pip install '.[ray]'
    python examples/ray_tune.py --trials 20 --at-once 4

On a cluster: `ray start --head` on one machine, `ray start --address=HEAD:6379` on the others, and
on the head `python examples/ray_tune.py --address auto --at-once 32`. The engine runs in this
script only; the other machines need Ray and what `train` imports. A trial that is out is a pending
point, one that raises is a failed trial.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile

import optuna
import ray
from optuna.distributions import CategoricalDistribution, FloatDistribution
from ray import tune
from ray.tune.search.optuna import OptunaSearch

from optpair.integrations.optuna import JESSampler

SPACE = {
    "lr": FloatDistribution(1e-5, 1.0, log=True),
    "act": CategoricalDistribution(["relu", "tanh"]),
}


def train(config: dict) -> dict:
    """Yours: train something, on whichever machine this runs."""
    miss = abs(math.log10(config["lr"]) + 2) + 0.3 * (config["act"] == "tanh")
    return {"loss": miss + random.gauss(0, 0.1)}


def main(trials: int, at_once: int, address: str | None) -> None:
    """Run a study on a cluster, or here, and print the recommendation."""
    ray.init(address=address)
    with tempfile.TemporaryDirectory() as folder:  # a folder that all machines see, to keep it
        storage = optuna.storages.RDBStorage(f"sqlite:///{folder}/study.db")
        sampler = JESSampler(seed=0, search_space=SPACE)
        search = OptunaSearch(
            SPACE, metric="loss", mode="min", sampler=sampler, storage=storage, study_name="tune"
        )
        config = tune.TuneConfig(
            search_alg=search, num_samples=trials, max_concurrent_trials=at_once
        )
        run = tune.RunConfig(storage_path=folder, verbose=0)
        tune.Tuner(train, tune_config=config, run_config=run).fit()
        study = optuna.load_study(study_name="tune", storage=storage)
        done = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
        print(f"{len(done)} of {trials} trials gave a value")
        print(sampler.recommend(study))
    ray.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--address", help="of a Ray cluster; none: this machine")
    main(**vars(parser.parse_args()))
