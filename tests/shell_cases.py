"""One tiny study for the tests of the user-facing shell, so that it is quick."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from optpair import Categorical, Float, Hyperparameters, Optimizer, Settings, Space

SPACE = Space({"x": Float(-1.0, 1.0), "c": Categorical(["a", "b"])})
TINY: dict[str, Any] = {
    "sets": 3,
    "pairs": 2,
    "features": 64,
    "candidates": 64,
    "path_candidates": 64,
    "starts": 2,
    "steps": 4,
    "moves": 2,
    "repeat": False,
}
KNOWN = Hyperparameters(np.array([[0.4, 1.0]]), np.array([1.0]), np.array([0.01]), np.array([0.0]))
# One known set, and no optimal pairs to sample.
CHEAP: dict[str, Any] = {
    "acquisition": "logei",
    "hyperparameters": KNOWN,
    "settings": Settings(**TINY),
}


def jes(
    seed: int = 0, space: Space = SPACE, noise: float | None = None, **settings: Any
) -> Optimizer:
    """The method itself, tiny."""
    return Optimizer(space, seed=seed, noise=noise, settings=Settings(**{**TINY, **settings}))


def cheap(seed: int = 0, space: Space = SPACE, **options: Any) -> Optimizer:
    """An optimiser that is quick."""
    return Optimizer(space, seed=seed, **{**CHEAP, **options})


def point(i: int) -> dict[str, Any]:
    """The i-th of some spread-out points of SPACE."""
    return {"x": -1 + 2 * (0.618034 * i % 1), "c": "ab"[i % 2]}


def filled(optimizer: Optimizer, values: list[float], **kwargs: Any) -> Optimizer:
    """Told these values at spread-out points."""
    for i, value in enumerate(values):
        optimizer.tell(point(i), value, **kwargs)
    return optimizer


def objective(params: dict[str, Any]) -> float:
    """A bowl, and a price for b."""
    return float((params["x"] - 0.3) ** 2 + (params["c"] == "b"))


def python(script: str, *args: str, env: dict[str, str] | None = None) -> Any:
    """Run a script in a process of its own, with warnings as errors."""
    here = Path(__file__).parent
    paths = [str(here), str(here.parent / "src")]
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *args],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(env or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def shell(command: str) -> Any:
    """Run a command by bash, with this copy of the package; standard error is the command's."""
    return subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent / "src")},
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
