"""Whole processes, timed from their start: a first ask, whole searches, every ask of a long one.

Each measurement is a new Python process with an empty cache folder, imports included, which uses
the library as a user's script would. Objectives are instant: all the time is the optimiser's.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optpair_bench.methods import peers
from optpair_bench.timing import speed
from optpair_bench.timing.speed import Plan

ROUNDS = 3
NEAR = 10  # asks on each side of the slowest one that it is compared with
SEARCHES = ((6, 100), (2, 15))  # dimensions and evaluations of whole searches
OURS, OPTUNA = "optpair", "Optuna GPSampler"


def peak() -> float:
    """The most memory that this process has held, in MB.

    On Linux not by `getrusage`, which counts what the parent held when this one was started.
    """
    status = Path("/proc/self/status")
    if status.exists():
        kept = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
        if kept:
            return int(kept[1]) / 2**10
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


# The scripts below import nothing of the benchmarks, which would count as the library's.
_START = f"""
import json, random, re, resource, sys, time
from pathlib import Path
{inspect.getsource(peak)}
began, given = float(sys.argv[1]), json.loads(sys.argv[2])
noise = random.Random(0)
names = [f"x{{i}}" for i in range(given["dimensions"])]
def objective(params):
    return sum((params[name] - 0.3) ** 2 for name in names) + 0.05 * noise.gauss(0, 1)
"""

_OPTPAIR = f"""{_START}
import optpair
space = optpair.Space({{name: optpair.Float(0, 1) for name in names}})
"""

_COLD = f"""{_OPTPAIR}
optimizer = optpair.Optimizer(space, seed=0, acquisition=given["method"])
imported = time.time() - began
for _ in range(given["n"]):
    params = {{name: noise.random() for name in names}}
    optimizer.tell(params, objective(params))
begin = time.time()
optimizer.ask()
end = time.time()
found = {{"imports": imported, "first ask": end - begin, "in all": end - began}}
print(json.dumps(found | {{"peak MB": peak()}}))
"""

_SEARCH = f"""{_OPTPAIR}
optpair.minimize(objective, space, given["evaluations"], seed=0, progress=False)
print(json.dumps({{"seconds": time.time() - began, "peak MB": peak()}}))
"""

_OPTUNA_SEARCH = f"""{_START}
import optuna
optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=0))
suggest = lambda trial: {{name: trial.suggest_float(name, 0, 1) for name in names}}
study.optimize(lambda trial: objective(suggest(trial)), given["evaluations"])
print(json.dumps({{"seconds": time.time() - began, "peak MB": peak()}}))
"""

_ASKS = f"""{_OPTPAIR}
optimizer = optpair.Optimizer(space, seed=0, acquisition=given["method"])
seconds = []
for _ in range(given["evaluations"]):
    begin = time.perf_counter()
    trial = optimizer.ask()
    seconds.append(time.perf_counter() - begin)
    optimizer.tell(trial, objective(trial.params))
print(json.dumps({{"seconds": seconds, "peak MB": peak()}}))
"""

_MEMORY = """
import json, sys
from optpair_bench.timing.processes import ask_and_weigh
ask_and_weigh(json.loads(sys.argv[2]))
"""


def in_new_process(script: str, given: dict[str, Any]) -> dict[str, Any]:
    """The JSON that a script prints last; what earlier processes have cached is out of its way."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"XDG_CACHE_HOME": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed has its bytecode
        command = [sys.executable, "-c", script, repr(time.time()), json.dumps(given)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"the new process failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def cold(plan: Plan) -> dict[str, float]:
    """A new process up to the first suggestion of the model, which has n told trials.

    Seconds of the imports and of that ask, and from the start of the process to its end.
    """
    rounds = [in_new_process(_COLD, asdict(plan)) for _ in range(ROUNDS)]
    return {key: float(np.median([one[key] for one in rounds])) for key in rounds[0]}


@dataclass(frozen=True)
class Whole:
    """Whole searches of one size: medians by library, of seconds and of the most memory."""

    dimensions: int
    evaluations: int
    seconds: dict[str, float]
    memory: dict[str, float]


def whole(dimensions: int, evaluations: int, *, with_peers: bool) -> Whole:
    """Time whole searches of instant evaluations, from the start of the process.

    The medians of three rounds, in which everyone has a turn: other work on the machine is shared.
    """
    scripts = {OURS: _SEARCH} | ({OPTUNA: _OPTUNA_SEARCH} if with_peers else {})
    given = {"dimensions": dimensions, "evaluations": evaluations}
    rounds = [
        {name: in_new_process(script, given) for name, script in scripts.items()}
        for _ in range(ROUNDS)
    ]

    def medians(key: str) -> dict[str, float]:
        return {name: float(np.median([one[name][key] for one in rounds])) for name in scripts}

    return Whole(dimensions, evaluations, medians("seconds"), medians("peak MB"))


@dataclass(frozen=True)
class Long:
    """Every ask of one long search."""

    dimensions: int
    seconds: list[float]
    memory: float

    @property
    def slowest(self) -> int:
        """Which ask took longest, from 0."""
        return int(np.argmax(self.seconds))

    @property
    def near(self) -> float:
        """The median of the asks around the slowest."""
        at = self.slowest
        around = self.seconds[max(at - NEAR, 0) : at] + self.seconds[at + 1 : at + 1 + NEAR]
        return float(np.median(around))


def long(plan: Plan, evaluations: int) -> Long:
    """Time every ask of a search of instant evaluations."""
    if evaluations < 2:
        raise ValueError(f"a long search has at least 2 evaluations, not {evaluations}")
    found = in_new_process(_ASKS, asdict(plan) | {"evaluations": evaluations})
    return Long(plan.dimensions, found["seconds"], found["peak MB"])


def memory(plan: Plan, name: str) -> float:
    """The most memory, in MB, of a process that asks one optimiser of a plan once, by its name.

    What the benchmarks import is counted, for every library alike.
    """
    found = in_new_process(_MEMORY, {"plan": asdict(plan), "name": name})
    return float(found["peak MB"])


def ask_and_weigh(given: dict[str, Any]) -> None:
    """In a new process: ask once, and print the most memory that it has held."""
    plan, name = Plan(**given["plan"]), given["name"]
    known = {entry.name: entry for entry in speed.entries(plan)}
    if name in known:
        study: peers.Peer = speed.peer_study(known[name], plan)
    else:
        study = speed.ours_study(plan)
    study.ask()
    print(json.dumps({"peak MB": peak()}))
