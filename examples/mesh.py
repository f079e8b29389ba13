"""A simulation by mesh: coarse ones are cheap, and the answer is for the finest.

    python examples/mesh.py

A plate is heated in a corner and cooled by two pipes. Where should they be, for the hottest spot to
be as cool as possible? The temperature is solved for on a mesh of n × n cells; n is a fidelity, and
what a mesh costs is told as n².
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy.sparse import diags, identity, kron
from scipy.sparse.linalg import spsolve

from optpair import Fidelity, Float, Space, minimize

SPACE = Space(
    {
        "x": Float(0.1, 0.9),
        "y": Float(0.1, 0.9),
        "gap": Float(0.1, 0.5),
        "cells": Fidelity(8, 64, log=True),
    }
)


def hottest(params: dict[str, Any]) -> float:
    """The highest temperature on a mesh of so many cells, both ways."""
    n = params["cells"]
    at = (np.arange(n) + 0.5) / n
    east, north = np.meshgrid(at, at, indexing="ij")
    heat = np.exp(-40 * ((east - 0.25) ** 2 + (north - 0.25) ** 2))
    cool = np.full((n, n), 0.1)
    for side in (-0.5, 0.5):
        x = params["x"] + side * params["gap"]
        cool += 30 * np.exp(-200 * ((east - x) ** 2 + (north - params["y"]) ** 2))
    ends = np.full(n, 2.0)
    ends[[0, -1]] = 1.0  # no heat leaves at the edges
    line = n**2 * diags([-np.ones(n - 1), ends, -np.ones(n - 1)], [-1, 0, 1])
    plate = kron(line, identity(n)) + kron(identity(n), line) + diags(cool.ravel())
    return float(spsolve(plate.tocsc(), 10 * heat.ravel()).max())


def main(budget: float) -> None:
    """Search, and say what it took."""
    whole = 64.0**2
    result = minimize(
        hottest,
        SPACE,
        budget_cost=budget * whole,
        cost=lambda params: float(params["cells"]) ** 2,
        seed=0,
        noise=0,
        progress=False,
    )
    print(result)
    cells = [trial.params["cells"] for trial in result.trials]
    print(f"{len(cells)} solutions for the cost of {result.optimizer.spent / whole:.1f} fine ones")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--budget", type=float, default=12.0, help="in solutions on the finest mesh"
    )
    main(**vars(parser.parse_args()))
