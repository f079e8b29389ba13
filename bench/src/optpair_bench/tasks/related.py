"""Tasks that resemble others: tables of networks, shifted functions, and two sites.

| name                        | space                           | resembles                       |
|-----------------------------|---------------------------------|---------------------------------|
| `table-car`, `table-kc1`, … | ten levels of four parameters   | the same networks on other data |
| `box-…` (`spaces.py`)       | a box                           | three copies, shifted by 0.05   |
| `sites-hartmann3-left`, …   | a box, and a site that is given | the same at the other site      |

The noise of tables is normal, with the variance between their seeds. At one site the function is
shifted by 0.1 in its last input, and its values are scaled; a task is about the answer for one of
the two, while trials are at both in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from optpair.problem.space import Context, Int, Space
from optpair.problem.space import Float as Real
from optpair_bench.tasks import tables
from optpair_bench.tasks.functions import SYNTHETIC

Params = Mapping[str, Any]
COPIES = 3  # of a function that are shifted
SHIFT = 0.05  # of the cube, the standard deviation in each input
SITES = ("left", "right")
APART = 0.1  # of the cube, the shift of the right site
SITED = ("branin", "hartmann3", "hartmann6")
LEVELS = ("alpha", "batch", "rate", "width")

TABLES = tuple(f"table-{name}" for name in tables.DATASETS)
SITE_TASKS = tuple(f"sites-{name}-{site}" for name in SITED for site in SITES)


def table_space() -> Space:
    """Ten levels of each parameter, evenly spaced on a log scale."""
    return Space({name: Int(0, tables.LEVELS - 1) for name in LEVELS})


@cache
def accuracies(name: str) -> tuple[Callable[[Params], float], float, float]:
    """The mean accuracy of a network by its levels, the best of them, and the noise."""
    table = tables.load(name.removeprefix("table-"))
    means = table.accuracy.mean(-1)

    def function(params: Params) -> float:
        return float(means[tuple(int(params[level]) for level in LEVELS)])

    return function, float(means.max()), float(np.sqrt(table.noise_var))


def site_space(name: str) -> Space:
    """A box, and the site."""
    inputs = {f"x{i}": Real(0.0, 1.0) for i in range(len(SYNTHETIC[name].bounds))}
    return Space({**inputs, "site": Context(list(SITES))})


def at_sites(name: str) -> Callable[[Params], float]:
    """A function that is shifted at the right site, where it is also 1.5 times as steep.

    What is shifted beyond the box is mirrored at its end.
    """
    formula = SYNTHETIC[name]

    def function(params: Params) -> float:
        x = np.array([v for n, v in params.items() if n != "site"], dtype=float)
        if params["site"] == SITES[0]:
            return float(formula(x[None])[0])
        best = formula.optimum().f
        x[-1] = x[-1] + APART if x[-1] < 1 - APART else 2 - APART - x[-1]
        return float(best + 1.5 * (formula(x[None])[0] - best))

    return function


def shifted(
    function: Callable[[Params], float], rng: np.random.Generator, inputs: int
) -> Callable[[Params], float]:
    """A copy of a function of the unit cube that is shifted, scaled and lifted."""
    shift = SHIFT * rng.standard_normal(inputs)
    scale, lift = float(np.exp(0.5 * rng.standard_normal())), 3 * float(rng.standard_normal())

    def copy(params: Params) -> float:
        moved = np.clip(np.array(list(params.values())) + shift, 0.0, 1.0)
        return lift + scale * function(dict(zip(params, moved.tolist(), strict=True)))

    return copy


def unlike(
    rows: list[dict[str, Any]], space: Space, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """A study that has nothing to do with the one it was: inputs exchanged, values negated."""
    names = list(space)
    from_, flip = rng.permutation(len(names)), rng.integers(0, 2, len(names))
    ends = {name: (p.low, p.high) for name, p in space.items()}  # type: ignore[union-attr]
    found = []
    for row in rows:
        values = [row[names[i]] for i in from_]
        mirrored = [
            sum(ends[name]) - v if turn else v
            for name, v, turn in zip(names, values, flip, strict=True)
        ]
        found.append({**dict(zip(names, mirrored, strict=True)), "value": -row["value"]})
    return found
