"""Coverage: how often the 95 % interval of a recommendation holds the noiseless value there.

Each kind of objective is one that real ones resemble and a Gaussian process does not expect: kinks,
steps, corners, noise with heavy tails, values over orders of magnitude. Every search is a new run
of the library at its default settings, on a function that is shifted by its seed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from optpair import Float, Int, Optimizer, Space
from optpair.persistence import files

CHECKPOINTS = (15, 30)
NOISE = 0.05  # standard deviation; functions vary by about 1 over the unit cube

Function = Callable[[np.ndarray], float]
Noise = Callable[[np.random.Generator, np.ndarray], float]


def _bowl(z: np.ndarray) -> float:
    return float(4 * np.sum(z**2) / len(z))


def _cone(z: np.ndarray) -> float:
    return float(2 * np.sum(np.abs(z)) / len(z))


def _ackley(z: np.ndarray) -> float:
    waves = np.exp(np.mean(np.cos(8 * np.pi * z)))
    return float((20 + math.e - 20 * np.exp(-0.8 * np.sqrt(np.mean(z**2))) - waves) / 5)


def _rugged(z: np.ndarray) -> float:
    return _bowl(z) + 0.1 * float(np.sum(1 - np.cos(20 * z)))


def _steps(z: np.ndarray) -> float:
    return _bowl(z) + 0.4 * float(np.sum(z > 0.15))


def _orders(z: np.ndarray) -> float:
    return 10 ** (3 * _bowl(z))


def _flat(x: np.ndarray) -> float:
    return 0.0


def _slope(x: np.ndarray) -> float:
    return float(np.sum(x) / len(x))


def _normal(rng: np.random.Generator, x: np.ndarray) -> float:
    return NOISE * float(rng.normal())


def _heavy(rng: np.random.Generator, x: np.ndarray) -> float:
    return NOISE * float(rng.standard_t(2))


def _tripling(rng: np.random.Generator, x: np.ndarray) -> float:
    return NOISE * (1 + 2 * float(x[0])) * float(rng.normal())


def _slips(rng: np.random.Generator, x: np.ndarray) -> float:
    slip = 10 * float(rng.choice([-1, 1])) if rng.uniform() < 0.05 else 0.0
    return _normal(rng, x) + slip


def _none(rng: np.random.Generator, x: np.ndarray) -> float:
    return 0.0


@dataclass(frozen=True)
class Kind:
    """A kind of objective, to be minimised over the unit cube."""

    function: Function
    noise: Noise = _normal
    dimensions: int = 3
    levels: int | None = None
    """Of each parameter; None where it is continuous."""
    corner: bool = False
    """Whether the function is of x itself and falls towards a corner, instead of around a point."""


KINDS: Mapping[str, Kind] = {
    "Gaussian noise": Kind(_bowl),
    "Student-t noise, 2 degrees": Kind(_bowl, _heavy),
    "noise that triples over the space": Kind(_bowl, _tripling),
    "5 % slips of ten spreads": Kind(_bowl, _slips),
    "rugged": Kind(_rugged),
    "discontinuous": Kind(_steps),
    "cone": Kind(_cone),
    "cone without noise": Kind(_cone, _none),
    "Ackley": Kind(_ackley),
    "optimum in a corner": Kind(_slope, corner=True),
    "values over orders of magnitude": Kind(_orders, lambda rng, x: 20 * _normal(rng, x)),
    "fifteen parameters": Kind(_bowl, dimensions=15),
    "integers": Kind(_bowl, levels=12),
    "without noise": Kind(_bowl, _none),
    "nothing but noise": Kind(_flat),
}


@dataclass(frozen=True)
class Held:
    """What was recommended after some evaluations, and what it is worth."""

    kind: str
    seed: int
    evaluations: int
    low: float
    high: float
    truth: float

    @property
    def holds(self) -> bool:
        """Whether the interval holds the noiseless value; round-off is no miss."""
        slack = 1e-9 * max(abs(self.low), abs(self.high), abs(self.truth))
        return self.low - slack <= self.truth <= self.high + slack


@dataclass(frozen=True)
class Shifted:
    """An objective of a kind, shifted by its seed, whose noise comes from a stream of its own."""

    kind: Kind
    centre: np.ndarray
    rng: np.random.Generator

    @property
    def _top(self) -> int:
        return 1 if self.kind.levels is None else self.kind.levels - 1

    @property
    def space(self) -> Space:
        """The unit cube, or levels in it."""
        parameter = Float(0, 1) if self.kind.levels is None else Int(0, self._top)
        return Space({f"x{i}": parameter for i in range(self.kind.dimensions)})

    def _place(self, params: Mapping[str, float]) -> np.ndarray:
        return np.array(list(params.values()), dtype=float) / self._top

    def value(self, params: Mapping[str, float]) -> float:
        """Without noise."""
        x = self._place(params)
        return self.kind.function(x if self.kind.corner else x - self.centre)

    def measured(self, params: Mapping[str, float]) -> float:
        """With noise."""
        return self.value(params) + self.kind.noise(self.rng, self._place(params))


def made(name: str, seed: int) -> Shifted:
    """The objective of a kind with this seed."""
    kind, rng = KINDS[name], np.random.default_rng([seed, *map(ord, name)])
    return Shifted(kind, rng.uniform(0.25, 0.75, kind.dimensions), rng)


def search(name: str, seed: int, checkpoints: tuple[int, ...] = CHECKPOINTS) -> list[Held]:
    """Minimise an objective of a kind once, and ask for an answer at each checkpoint."""
    objective = made(name, seed)
    optimizer, found = Optimizer(objective.space, seed=seed), []
    for done in range(1, max(checkpoints) + 1):
        trial = optimizer.ask()
        optimizer.tell(trial, objective.measured(trial.params))
        if done in checkpoints:
            best = optimizer.recommend()
            low, high = best.interval
            found.append(Held(name, seed, done, low, high, objective.value(best.params)))
    return found


def measure(seeds: Iterable[int], out: Path) -> list[Held]:
    """Searches of every kind with some seeds; those that the file has are not done again."""
    rows = read(out) if out.exists() else []
    done = {(row.kind, row.seed) for row in rows}
    wanted = tuple(seeds)
    for seed in wanted:
        for name in KINDS:
            if (name, seed) not in done:
                rows += search(name, seed)
                files.write(out, "".join(json.dumps(asdict(row)) + "\n" for row in rows))
    return [row for row in rows if row.seed in wanted]


def read(path: Path) -> list[Held]:
    """The rows of a JSON lines file."""
    return [Held(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def table(rows: list[Held]) -> str:
    """One line for each kind: how many intervals hold, at each checkpoint, and the standard error.

    The error is that of a share of 0.95.
    """
    points = sorted({row.evaluations for row in rows})
    lines = [f"{'':34}" + "".join(f"{f'n = {n}':>16}" for n in points)]
    for name in KINDS:
        cells = ""
        for n in points:
            own = [row.holds for row in rows if row.kind == name and row.evaluations == n]
            error = math.sqrt(0.95 * 0.05 / len(own)) if own else math.nan
            share = f"{np.mean(own):.2f} ± {error:.2f}" if own else ""
            cells += f"{share:>16}"
        lines.append(f"{name:34}{cells}")
    return "\n".join(lines)
