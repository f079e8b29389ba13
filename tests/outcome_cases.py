"""A tiny study with three outcomes, whose best compromises are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optpair import Constraint, Float, Objective, Optimizer, Settings, Space
from shell_cases import TINY

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
GAIN = Objective("maximize", bounds=(None, 1.0))
LIMIT = Constraint(high=0.5)
CONSTRAINED = {"gain": GAIN, "load": LIMIT}
FRONT = {"gain": GAIN, "cost": "minimize"}
ALL = FRONT | {"load": LIMIT}


def truth(params: Mapping[str, Any]) -> dict[str, float]:
    """The gain is best at (0.8, 0.4), the cost at x = 0, and the load is the distance from x = 0.1.

    Under the limit the best gain is at (0.6, 0.4); every point of the front has y = 0.4.
    """
    x, y = params["x"], params["y"]
    return {
        "gain": 1 - (x - 0.8) ** 2 - (y - 0.4) ** 2,
        "cost": x + (y - 0.4) ** 2,
        "load": abs(x - 0.1),
    }


def several(
    outcomes: Mapping[str, Any], seed: int = 0, way: Any = "marginal", **settings: Any
) -> Optimizer:
    """The method itself, tiny, for several outcomes."""
    chosen = Settings(**{**TINY, **settings})
    return Optimizer(SPACE, outcomes=outcomes, seed=seed, hyperparameters=way, settings=chosen)


def point(i: int) -> dict[str, float]:
    """The i-th of some spread-out points of SPACE."""
    return {"x": (0.5 + 0.754878 * i) % 1, "y": (0.5 + 0.569840 * i) % 1}


def told(optimizer: Optimizer, count: int) -> Optimizer:
    """Told what is true at spread-out points."""
    for i in range(count):
        values = truth(point(i))
        optimizer.tell(point(i), {name: values[name] for name in optimizer.problem.names})
    return optimizer
