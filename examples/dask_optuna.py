"""Dask runs the workers of one Optuna study, optpair chooses the trials in each.

    pip install '.[dask]'
    python examples/dask_optuna.py --trials 20 --workers 2

On a cluster: `dask scheduler` on one machine, `dask worker tcp://SCHEDULER:8786 --nthreads 1` on
the others, each with `optpair[dask]` installed, and `python examples/dask_optuna.py --address
tcp://SCHEDULER:8786 --workers 32`. The study is kept in the scheduler's memory; give `DaskStorage`
an URL, such as sqlite:///study.db, to have the scheduler write it down. Each worker has an engine
of its own, with the same seed, and sees what the others are trying as pending points.
"""

from __future__ import annotations

import argparse
import math
import random

import optuna
from distributed import Client
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna_integration.dask import DaskStorage

from optpair.integrations.optuna import JESSampler

SPACE = {
    "lr": FloatDistribution(1e-5, 1.0, log=True),
    "act": CategoricalDistribution(["relu", "tanh"]),
}


def train(trial: optuna.Trial) -> float:
    """Yours: train something, on whichever machine this runs."""
    lr = trial.suggest_float("lr", 1e-5, 1.0, log=True)
    act = trial.suggest_categorical("act", ["relu", "tanh"])
    return abs(math.log10(lr) + 2) + 0.3 * (act == "tanh") + random.gauss(0, 0.1)


def main(trials: int, workers: int, address: str | None) -> None:
    """Run a study on a cluster, or here, and print the recommendation."""
    here = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with Client(address) if address else Client(**here) as client:
        sampler = JESSampler(seed=0, search_space=SPACE)
        study = optuna.create_study(storage=DaskStorage(client=client), sampler=sampler)
        # A share each, in one go: an engine stays warm from one of its trials to the next.
        shares = [trials // workers + (i < trials % workers) for i in range(workers)]
        runs = [client.submit(study.optimize, train, share, pure=False) for share in shares]
        client.gather(runs)
        done = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
        print(f"{len(done)} of {trials} trials gave a value")
        print(sampler.recommend(study))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--address", help="of a Dask scheduler; none: this machine")
    main(**vars(parser.parse_args()))
