"""Tasks with several outcomes: an objective under constraints, or several objectives.

Outcomes are the columns of an array: first the objectives, to be **maximised** (what the literature
minimises is negated), then the constraints, met where they are at least 0. Sizes below are inputs,
objectives and constraints. `gramacy@5%` is Gramacy with noise whose standard deviation is 5 % of
each outcome's spread over the cube.

| name               | sizes                | from                        |
|--------------------|----------------------|-----------------------------|
| `gramacy`          | 2, 1, 2              | Gramacy et al. (2016)       |
| `g24`, `g04`       | 2, 1, 2 and 5, 1, 6  | Liang et al. (2006), CEC    |
| `string`, `beam`   | 3, 1, 4 and 4, 1, 6  | Coello Coello (2002)        |
| `reducer`          | 7, 1, 11             | Lemonge et al. (2010)       |
| `branin-currin`    | 2, 2, 0              | Belakaria et al. (2019)     |
| `zdt1`, `zdt2`     | 4, 2, 0              | Zitzler et al. (2000)       |
| `dtlz2`, `dtlz2-3` | 4, 2, 0 and 4, 3, 0  | Deb et al. (2002)           |
| `c2-dtlz2`         | 4, 2, 1              | Jain and Deb (2014)         |
| `vehicle`          | 5, 3, 0              | Tanabe and Ishibuchi (2020) |
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from scipy.stats import qmc

from optpair.engine.hypervolume import hypervolume
from optpair.runtime.shapes import Bool, Float
from optpair_bench.tasks.functions import Bounds, Optimum, branin, noise_share

Points = Float[np.ndarray, "q d"]
Outcomes = Float[np.ndarray, "q O"]
SPREAD_POINTS = 2**12


@dataclass(frozen=True)
class Joint:
    """A formula of several outcomes in its own units, and the best that is known of it."""

    formula: Callable[[Points], Outcomes]
    bounds: Bounds
    objectives: int
    best: float
    """The largest feasible value or, of several objectives, the largest hypervolume."""
    reference: tuple[float, ...] = ()
    """From which the hypervolume is measured; of objectives to be maximised."""

    def __call__(self, X: Points) -> Outcomes:
        """Outcomes at points of the unit cube."""
        low, high = np.array(self.bounds).T
        return self.formula(low + (high - low) * np.asarray(X, dtype=np.float64))

    @cached_property
    def spread(self) -> Float[np.ndarray, " O"]:
        """The standard deviation of each outcome over Sobol points of the cube."""
        points = qmc.Sobol(len(self.bounds), scramble=True, rng=0).random(SPREAD_POINTS)
        return np.std(self(points), axis=0)


@dataclass(frozen=True)
class JointTask:
    """Noisy outcomes of one name, seed and level of noise; with the face of a `Task`."""

    name: str
    seed: int
    function: Joint
    noise: float = 0.0
    """The standard deviation of the noise, as a share of each outcome's spread."""
    levels: None = field(default=None, init=False)

    @property
    def dimensions(self) -> int:
        """The number of inputs."""
        return len(self.function.bounds)

    @property
    def noise_var(self) -> float:
        """That of an outcome in units of its spread."""
        return self.noise**2

    @property
    def optimum(self) -> Optimum:
        """The best that is known: a value, or a hypervolume; of no single point."""
        return Optimum(np.empty(0), self.function.best)

    def value(self, X: Points) -> Outcomes:
        """Noiseless outcomes."""
        return self.function(X)

    def observe(self, x: Float[np.ndarray, " d"], index: int) -> Float[np.ndarray, " O"]:
        """Noisy outcomes at one point. The noise belongs to the index, whatever the point."""
        name = zlib.crc32(f"{self.name} noise".encode())
        draws = np.random.default_rng([name, self.seed, index]).standard_normal(self.outcomes)
        noise = self.noise * self.function.spread * draws if self.noise else 0.0
        return self.value(x[None])[0] + noise

    @property
    def outcomes(self) -> int:
        """How many there are."""
        return len(self.function.spread)

    def initial(self, points: int) -> Points:
        """None: each method has a start of its own."""
        if points:
            raise ValueError(f"{self.name} begins without points given, not with {points}")
        return np.empty((0, self.dimensions))

    def feasible(self, Y: Outcomes) -> Bool[np.ndarray, " q"]:
        """Which rows meet all constraints."""
        return np.all(Y[:, self.function.objectives :] >= 0, axis=1)

    def lost(self, X: Points) -> float:
        """What an answer lacks, noiseless.

        Of one objective: f_opt − f(x) of the best feasible row, in units of its spread; where no
        row is feasible, what the worst of 4096 points over the cube lacks. Of several: the share of
        the largest hypervolume that the feasible rows do not have.
        """
        function, Y = self.function, self.value(X)
        kept = Y[self.feasible(Y), : function.objectives]
        if function.objectives > 1:
            reference = np.array(function.reference)
            volume = hypervolume(np.maximum(kept, reference), reference) if len(kept) else 0.0
            return max(1 - volume / function.best, 0.0)
        reached = float(kept.max()) if len(kept) else self._worst
        return max(function.best - reached, 0.0) / float(function.spread[0])

    @cached_property
    def _worst(self) -> float:
        points = qmc.Sobol(self.dimensions, scramble=True, rng=0).random(SPREAD_POINTS)
        return float(self.value(points)[:, 0].min())


def gramacy(X: Points) -> Outcomes:
    """x₁ + x₂ to be minimised, above a wave and within a circle."""
    a, b = X.T
    wave = a + 2 * b + 0.5 * np.sin(2 * np.pi * (a**2 - 2 * b)) - 1.5
    return np.column_stack([-(a + b), wave, 1.5 - a**2 - b**2])


def g24(X: Points) -> Outcomes:
    """x₁ + x₂ below two polynomials, which leave two regions."""
    a, b = X.T
    first = 2 * a**4 - 8 * a**3 + 8 * a**2 + 2 - b
    second = 4 * a**4 - 32 * a**3 + 88 * a**2 - 96 * a + 36 - b
    return np.column_stack([a + b, first, second])


def g04(X: Points) -> Outcomes:
    """Himmelblau's problem: a quadratic form, and three of them within limits."""
    a, b, c, d, e = X.T
    cost = 5.3578547 * c**2 + 0.8356891 * a * e + 37.293239 * a - 40792.141
    u = 85.334407 + 0.0056858 * b * e + 0.0006262 * a * d - 0.0022053 * c * e
    v = 80.51249 + 0.0071317 * b * e + 0.0029955 * a * b + 0.0021813 * c**2
    w = 9.300961 + 0.0047026 * c * e + 0.0012547 * a * c + 0.0019085 * c * d
    return np.column_stack([-cost, u, 92 - u, v - 90, 110 - v, w - 20, 25 - w])


def string(X: Points) -> Outcomes:
    """The weight of a spring of wire a, coil b and c turns; violations are cut off at 100."""
    a, b, c = X.T
    with np.errstate(divide="ignore"):
        shear = (4 * b**2 - a * b) / (12566 * a**3 * (b - a)) + 1 / (5108 * a**2) - 1
    limits = [1 - b**3 * c / (71785 * a**4), shear, 1 - 140.45 * a / (c * b**2), (a + b) / 1.5 - 1]
    return np.column_stack([-(a**2) * b * (c + 2), *(-np.minimum(g, 100) for g in limits)])


def beam(X: Points) -> Outcomes:
    """The cost of a welded beam: stresses, geometry, deflection and buckling are limited."""
    h, length, t, b = X.T
    load, arm, young, shear = 6000.0, 14.0, 30e6, 12e6
    radius = np.sqrt(length**2 / 4 + (h + t) ** 2 / 4)
    polar = 2 * np.sqrt(2) * h * length * (length**2 / 12 + (h + t) ** 2 / 4)
    direct = load / (np.sqrt(2) * h * length)
    torsion = load * (arm + length / 2) * radius / polar
    tau = np.sqrt(direct**2 + direct * torsion * length / radius + torsion**2)
    bending, bent = 6 * load * arm / (b * t**2), 4 * load * arm**3 / (young * t**3 * b)
    slender = 1 - t / (2 * arm) * np.sqrt(young / (4 * shear))
    buckling = 4.013 * young * t * b**3 / (6 * arm**2) * slender
    material = 0.04811 * t * b * (14 + length)
    return np.column_stack(
        [
            -(1.10471 * h**2 * length + material),
            1 - tau / 13600,
            1 - bending / 30000,
            b - h,
            5 - 0.10471 * h**2 - material,
            0.25 - bent,
            buckling / load - 1,
        ]
    )


def reducer(X: Points) -> Outcomes:
    """The weight of a speed reducer: teeth, shafts and geometry are limited."""
    a, b, c, d, e, f, g = X.T
    weight = 0.7854 * a * b**2 * (3.3333 * c**2 + 14.9334 * c - 43.0934)
    weight += 7.4777 * (f**3 + g**3) - 1.508 * a * (f**2 + g**2) + 0.7854 * (d * f**2 + e * g**2)
    first = np.sqrt((745 * d / (b * c)) ** 2 + 16.9e6) / (0.1 * f**3)
    second = np.sqrt((745 * e / (b * c)) ** 2 + 157.5e6) / (0.1 * g**3)
    return np.column_stack(
        [
            -weight,
            1 - 27 / (a * b**2 * c),
            1 - 397.5 / (a * b**2 * c**2),
            1 - 1.93 * d**3 / (b * c * f**4),
            1 - 1.93 * e**3 / (b * c * g**4),
            1100 - first,
            850 - second,
            40 - b * c,
            a / b - 5,
            12 - a / b,
            1 - (1.5 * f + 1.9) / d,
            1 - (1.1 * g + 1.9) / e,
        ]
    )


def branin_currin(X: Points) -> Outcomes:
    """−Branin and −Currin, on one square."""
    a, b = X.T
    with np.errstate(divide="ignore"):
        factor = 1 - np.exp(-1 / (2 * b))
    ratio = (2300 * a**3 + 1900 * a**2 + 2092 * a + 60) / (100 * a**3 + 500 * a**2 + 4 * a + 20)
    return np.column_stack([branin(np.column_stack([15 * a - 5, 15 * b])), -factor * ratio])


def zdt(X: Points, power: float) -> Outcomes:
    """−x₁ and −g(1 − (x₁/g)^power), g = 1 + 9 times the mean of the others."""
    g = 1 + 9 * X[:, 1:].mean(1)
    return np.column_stack([-X[:, 0], -g * (1 - (X[:, 0] / g) ** power)])


def dtlz2(X: Points, objectives: int) -> Outcomes:
    """The negated coordinates of a sphere of radius 1 + g, by its angles; g ≥ 0 is 0 at ½."""
    angles, rest = X[:, : objectives - 1] * np.pi / 2, X[:, objectives - 1 :]
    radius = 1 + np.sum((rest - 0.5) ** 2, axis=1)
    columns = []
    for k in range(objectives):
        ahead = np.prod(np.cos(angles[:, : objectives - 1 - k]), axis=1)
        turn = np.sin(angles[:, objectives - 1 - k]) if k else 1.0
        columns.append(-radius * ahead * turn)
    return np.column_stack(columns)


def c2_dtlz2(X: Points) -> Outcomes:
    """DTLZ2 of two objectives, feasible only near its ends and its middle: within 0.2."""
    values = -dtlz2(X, 2)
    ends = (values - 1) ** 2 + values[:, ::-1] ** 2 - 0.2**2
    middle = np.sum((values - np.sqrt(0.5)) ** 2 - 0.2**2, axis=1)
    return np.column_stack([-values, -np.minimum(ends.min(1), middle)])


def vehicle(X: Points) -> Outcomes:
    """Mass, acceleration and intrusion of a car in a crash, all negated (RE3-5-4)."""
    a, b, c, d, e = X.T
    mass = 1640.2823 + 2.3573285 * a + 2.3220035 * b + 4.5688768 * c + 7.7213633 * d + 4.4559504 * e
    acceleration = 6.5856 + 1.15 * a - 1.0427 * b + 0.9738 * c + 0.8364 * d - 0.3695 * a * d
    acceleration += 0.0861 * a * e + 0.3628 * b * d - 0.1106 * a**2 - 0.3437 * c**2 + 0.1764 * d**2
    intrusion = -0.0551 + 0.0181 * a + 0.1024 * b + 0.0421 * c - 0.0073 * a * b + 0.024 * b * c
    intrusion += -0.0118 * b * d - 0.0204 * c * d - 0.008 * c * e - 0.0241 * b**2 + 0.0109 * d**2
    return -np.column_stack([mass, acceleration, intrusion])


UNIT = (0.0, 1.0)
CONSTRAINED = {
    "gramacy": Joint(gramacy, (UNIT,) * 2, 1, -0.599788),
    "g24": Joint(g24, ((0.0, 3.0), (0.0, 4.0)), 1, 5.50801327),
    "string": Joint(string, ((0.01, 1.0), (0.01, 1.0), (0.01, 20.0)), 1, -0.0126652),
    "beam": Joint(beam, ((0.125, 10.0), *((0.1, 10.0),) * 3), 1, -1.724852),
    "g04": Joint(g04, ((78.0, 102.0), (33.0, 45.0), *((27.0, 45.0),) * 3), 1, 30665.53867),
    "reducer": Joint(
        reducer,
        ((2.6, 3.6), (0.7, 0.8), (17.0, 28.0), (7.3, 8.3), (7.8, 8.3), (2.9, 3.9), (5.0, 5.5)),
        1,
        -2996.34816,
    ),
}
"""One objective under constraints."""
FRONTS = {
    "branin-currin": Joint(branin_currin, (UNIT,) * 2, 2, 59.36011874867746, (-18.0, -6.0)),
    "zdt1": Joint(partial(zdt, power=0.5), (UNIT,) * 4, 2, 1.21 - 1 / 3, (-1.1, -1.1)),
    "zdt2": Joint(partial(zdt, power=2.0), (UNIT,) * 4, 2, 1.21 - 2 / 3, (-1.1, -1.1)),
    "dtlz2": Joint(partial(dtlz2, objectives=2), (UNIT,) * 4, 2, 1.21 - np.pi / 4, (-1.1,) * 2),
    "c2-dtlz2": Joint(c2_dtlz2, (UNIT,) * 4, 2, 0.3996406303723544, (-1.1,) * 2),
    "dtlz2-3": Joint(partial(dtlz2, objectives=3), (UNIT,) * 4, 3, 1.331 - np.pi / 6, (-1.1,) * 3),
    "vehicle": Joint(
        vehicle,
        ((1.0, 3.0),) * 5,
        3,
        246.81607081187002,
        (-1864.72022, -11.81993945, -0.2903999384),
    ),
}
"""Several objectives, one of them under a constraint."""
REGISTRY = CONSTRAINED | FRONTS


def make(name: str, seed: int = 0) -> JointTask:
    """The task of that name; per cent of the spread after an @ are its noise.

    >>> make("gramacy@5%").noise
    0.05
    """
    plain = name.partition("@")[0]
    if plain not in REGISTRY:
        raise ValueError(f"task must be one of {', '.join(REGISTRY)}, not {name!r}")
    return JointTask(name, seed, REGISTRY[plain], noise_share(name))
