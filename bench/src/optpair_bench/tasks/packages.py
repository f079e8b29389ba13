"""Functions that others wrote: those of `opfunu` and `uqtestfuns`, for users' budgets.

Both packages come with `pip install './bench[arena]'`. Every function is **minimised** by its
authors' convention, so that it is negated here, and divided by its spread: the standard deviation
over the cube. Values, regrets and noise are therefore in units of the spread.

**Names** are package, function and dimension: `opf-levy-5`, `uq-borehole-8`. Noise follows an @, in
per cent of the spread: `opf-levy-5@20%` has a noise of standard deviation 0.2.

**The box** is the package's, for inputs with a distribution that from its 0.5 % to its 99.5 %
quantile, and then cut: of each input, 10 to 35 % of the range are cut off at one end (at the other
one where the package's own best point would go), and about every other input runs backwards. Both
are drawn from the task's name. So an optimum in the centre, or one whose coordinates are all equal,
where many a method looks by itself, is moved elsewhere, and the function is never asked for a value
where its authors have not defined it.

**The best known value** is that at the best point known: the package's own where it lies in the
box, or a better one that the search in `optima.py` found. Point and spread are in `packages.json`.

**The split**: families of functions (all those of Ackley's are one) are sorted by their smallest
dimension and their name, and dealt in turn: the first to tuning, the second to publication, and so
on. No function is in both.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from optpair.runtime.shapes import Float
from optpair_bench.tasks.functions import Bounds, Optimum

Package = Literal["opfunu", "uqtestfuns"]
Points = Float[np.ndarray, "q d"]
Values = Float[np.ndarray, " q"]
PREFIXES: Mapping[Package, str] = MappingProxyType({"opfunu": "opf", "uqtestfuns": "uq"})
CUT = (0.10, 0.35)  # the share of each input's range that is cut off
QUANTILES = (0.005, 0.995)  # of inputs that have a distribution
NOISES = (0, 5, 20)  # per cent of the spread


@dataclass(frozen=True)
class Source:
    """A class of a package, the dimensions it is used in, and what it is a kind of."""

    package: Package
    name: str
    cls: str
    dims: tuple[int, ...]
    kin: str = ""

    @property
    def family(self) -> str:
        """What it shares with functions that are much like it."""
        return self.kin or self.name


SOURCES = (
    # Two dimensions.
    Source("opfunu", "bird", "Bird", (2,)),
    Source("opfunu", "branin02", "Branin02", (2,)),
    Source("opfunu", "camel", "CamelSixHump", (2,)),
    Source("opfunu", "goldstein-price", "GoldsteinPrice", (2,)),
    Source("opfunu", "mccormick", "McCormick", (2,)),
    Source("uqtestfuns", "alemazkoor2", "Alemazkoor2D", (2,), "alemazkoor"),
    Source("uqtestfuns", "cheng", "Cheng2D", (2,)),
    Source("uqtestfuns", "franke", "Franke1", (2,)),
    Source("uqtestfuns", "gayton-hat", "GaytonHat", (2,)),
    Source("uqtestfuns", "webster", "Webster2D", (2,)),
    # Three and more, of the package's own box.
    Source("opfunu", "ackley", "Ackley01", (3,)),
    Source("opfunu", "alpine", "Alpine01", (3, 5)),
    Source("opfunu", "biggs3", "BiggsExp03", (3,), "biggs"),
    Source("opfunu", "biggs5", "BiggsExp05", (5,), "biggs"),
    Source("opfunu", "box-betts", "BoxBetts", (3,)),
    Source("opfunu", "spring", "DeflectedCorrugatedSpring", (3, 5)),
    Source("opfunu", "dixon-price", "DixonPrice", (3, 5)),
    Source("opfunu", "egg-holder", "EggHolder", (3,)),
    Source("opfunu", "griewank", "Griewank", (3,)),
    Source("opfunu", "gulf", "Gulf", (3,)),
    Source("opfunu", "hartmann", "Hartmann3", (3,)),
    Source("opfunu", "helical-valley", "HelicalValley", (3,)),
    Source("opfunu", "levy", "Levy03", (3, 5, 10, 20, 50)),
    Source("opfunu", "quintic", "Quintic", (5,)),
    Source("opfunu", "zakharov", "Zacharov", (3, 5)),
    Source("uqtestfuns", "bratley-b", "BratleyB", (3, 5), "bratley"),
    Source("uqtestfuns", "bratley-c", "BratleyC", (5,), "bratley"),
    Source("uqtestfuns", "bratley-d", "BratleyD", (5,), "bratley"),
    Source("uqtestfuns", "dette-curved", "DetteCurved", (3,)),
    Source("uqtestfuns", "dette-exp", "DetteExp", (3,)),
    Source("uqtestfuns", "genz-oscillatory", "GenzOscillatory", (3, 5)),
    Source("uqtestfuns", "ishigami", "Ishigami", (3,)),
    Source("uqtestfuns", "moon", "Moon3D", (3,)),
    Source("uqtestfuns", "morris", "MorrisM", (5,)),
    Source("uqtestfuns", "rosenbrock", "Rosenbrock", (3,)),
    # Shifted, and most of them rotated: the competitions of 2005, 2008 and 2013.
    Source("opfunu", "schwefel213", "F122005", (3, 5)),
    Source("opfunu", "griewank-rosenbrock", "F132005", (3,), "griewank"),
    Source("opfunu", "composition", "F152005", (5,)),
    Source("opfunu", "schwefel221", "F22008", (3,)),
    Source("opfunu", "shifted-rastrigin", "F42008", (3,), "rastrigin"),
    Source("opfunu", "rotated-elliptic", "F22013", (5, 50)),
    Source("opfunu", "different-powers", "F52013", (5, 10)),
    Source("opfunu", "rotated-rosenbrock", "F62013", (5, 10, 20, 50), "rosenbrock"),
    Source("opfunu", "rotated-schaffer6", "F202013", (5,)),
    Source("opfunu", "rotated-ackley", "F82013", (5,), "ackley"),
    Source("opfunu", "rotated-weierstrass", "F92013", (5,)),
    Source("opfunu", "rotated-griewank", "F102013", (5,), "griewank"),
    Source("opfunu", "rotated-rastrigin", "F122013", (5, 10, 20), "rastrigin"),
    Source("opfunu", "rotated-schwefel", "F152013", (5,)),
    # Physics.
    Source("uqtestfuns", "shaft", "RSSpeedReducerShaft", (5,)),
    Source("uqtestfuns", "otl-circuit", "OTLCircuit", (6,)),
    Source("uqtestfuns", "piston", "Piston", (7,)),
    Source("uqtestfuns", "borehole", "Borehole", (8,)),
    Source("uqtestfuns", "robot-arm", "RobotArm", (8,)),
    Source("uqtestfuns", "wing-weight", "WingWeight", (10,)),
    Source("uqtestfuns", "friedman", "Friedman10D", (10,)),
    Source("uqtestfuns", "alemazkoor20", "Alemazkoor20D", (20,), "alemazkoor"),
    Source("uqtestfuns", "piston20", "Piston20D", (20,), "piston"),
    Source("uqtestfuns", "welch", "Welch20D", (20,)),
)


class Entry(NamedTuple):
    """A function in one dimension."""

    source: Source
    dimensions: int


ENTRIES: Mapping[str, Entry] = MappingProxyType(
    {
        f"{PREFIXES[source.package]}-{source.name}-{d}": Entry(source, d)
        for source in SOURCES
        for d in source.dims
    }
)


def tuning_families() -> frozenset[str]:
    """Every other family, by smallest dimension and name."""
    least: dict[str, int] = {}
    for source in SOURCES:
        least[source.family] = min(*source.dims, least.get(source.family, 99), 99)
    return frozenset(sorted(least, key=lambda family: (least[family], family))[::2])


def names(*, tuning: bool) -> list[str]:
    """The tasks that settings may be tuned on, or those that results are published of."""
    chosen = tuning_families()
    ours = [name for name, entry in ENTRIES.items() if (entry.source.family in chosen) == tuning]
    return sorted(ours, key=lambda name: (ENTRIES[name].dimensions, name))


@dataclass(frozen=True)
class Packaged:
    """A function of a package on the unit cube, negated, in units of its spread."""

    formula: Callable[[Points], Values]
    start: Float[np.ndarray, " d"]
    end: Float[np.ndarray, " d"]
    """What 0 and 1 stand for; an input that runs backwards ends below its start."""
    spread: float = 1.0
    best: Float[np.ndarray, " d"] | None = None

    @property
    def bounds(self) -> Bounds:
        """The cut box in the package's units, from low to high."""
        ends = np.sort([self.start, self.end], axis=0)
        return tuple((float(low), float(high)) for low, high in ends.T)

    def __call__(self, X: Points) -> Values:
        """Values at points of the unit cube."""
        low, high = np.minimum(self.start, self.end), np.maximum(self.start, self.end)
        points = self.start + (self.end - self.start) * np.asarray(X)
        with np.errstate(all="ignore"):  # exp(−1/0) is the 0 that is meant
            values = self.formula(np.clip(points, low, high))  # rounding may end outside
        return np.asarray(-values / self.spread)

    def inside(self, z: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"] | None:
        """A point in the package's units as one of the cube; None where it is outside."""
        x = (z - self.start) / (self.end - self.start)
        return np.abs(x) if np.all((x >= 0) & (x <= 1)) else None  # no −0

    def optimum(self) -> Optimum:
        """The best point known, and the value there."""
        if self.best is None:
            raise ValueError("this function has no best point: see `optpair bench optima`")
        return Optimum(self.best, float(self(self.best[None])[0]))


@lru_cache(maxsize=32)
def load(name: str) -> Packaged:
    """The function of a task, with its spread and its best point from `packages.json`."""
    known = measured()[name]
    raw = uncut(name)
    return Packaged(raw.formula, *cut(name, raw), known["spread"], np.array(known["x"]))


def bare(name: str) -> Packaged:
    """The function on its cut box, of unknown spread and optimum."""
    raw = uncut(name)
    return Packaged(raw.formula, *cut(name, raw))


def cut(name: str, raw: Packaged) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Where each input starts and ends: a part of its range, maybe backwards."""
    d = len(raw.start)
    rng = np.random.default_rng([zlib.crc32(name.encode()), d])
    share, at_start, backwards = rng.uniform(*CUT, d), rng.random(d) < 0.5, rng.random(d) < 0.5
    width = raw.end - raw.start
    for z in claimed(name)[:1]:
        place = (z - raw.start) / width
        at_start = np.where(place < share, False, np.where(place > 1 - share, True, at_start))
    low = raw.start + np.where(at_start, share * width, 0.0)
    high = raw.end - np.where(at_start, 0.0, share * width)
    return np.where(backwards, high, low), np.where(backwards, low, high)


def uncut(name: str) -> Packaged:
    """The function on the package's own box."""
    source, d = ENTRIES[name]
    return (_opfunu if source.package == "opfunu" else _uqtestfuns)(source, d)


def claimed(name: str) -> Float[np.ndarray, "k d"]:
    """Where the package says that the function is smallest; no row where it says nothing."""
    source, d = ENTRIES[name]
    if source.package == "uqtestfuns":
        return np.empty((0, d))
    points = np.atleast_2d(np.asarray(_opfunu_problem(source, d).x_global, dtype=np.float64))
    return points if points.shape[1] == d else np.empty((0, d))


def _opfunu_problem(source: Source, d: int) -> Any:
    package = import_module("opfunu")
    fixed = len(source.dims) == 1 and not dict(package.ALL_DATABASE)[source.cls]().dim_changeable
    return dict(package.ALL_DATABASE)[source.cls](**({} if fixed else {"ndim": d}))


def _opfunu(source: Source, d: int) -> Packaged:
    problem = _opfunu_problem(source, d)

    def formula(X: Points) -> Values:
        return np.array([float(problem.evaluate(x)) for x in X])

    return Packaged(formula, np.array(problem.lb, float), np.array(problem.ub, float))


def _uqtestfuns(source: Source, d: int) -> Packaged:
    cls = getattr(import_module("uqtestfuns"), source.cls)
    problem = cls(input_dimension=d)
    ends = [
        marginal.icdf(np.array((0.0, 1.0) if marginal.distribution == "uniform" else QUANTILES))
        for marginal in problem.prob_input.marginals
    ]
    low, high = np.array(ends).T
    return Packaged(lambda X: np.asarray(problem(X), dtype=np.float64), low, high)


@lru_cache(maxsize=1)
def measured() -> Mapping[str, Mapping[str, Any]]:
    """Spread, best point and where that is from, by task."""
    return json.loads(files(__package__).joinpath("packages.json").read_text(encoding="utf-8"))
