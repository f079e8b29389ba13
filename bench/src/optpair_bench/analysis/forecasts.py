"""Forecasts: how many more trials a search was said to take, and how many it took.

Searches are those of `coverage`, on functions that vary by about 1. After some trials it is asked
how many more it takes until little is left to be won, by eight different wishes; the search then
goes on, and its own belief says when each was met. What was not met by the end of a search counts
as missed where three times the number of trials that was said would have been within it, and is
left out otherwise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from optpair import Optimizer, Stop
from optpair.engine.answers import Answers
from optpair.persistence import files
from optpair_bench.analysis.coverage import KINDS, made

LEFT_OUT = ("5 % slips of ten spreads", "fifteen parameters", "nothing but noise")
"""Kinds of objective of which hardly anything is ever said, or that take long."""
ASKED, LAST = (10, 20), 50
STOPS = tuple(Stop(gap, chance) for gap in (0.2, 0.1, 0.05, 0.02) for chance in (0.5, 0.9))
FACTORS = (2, 3)
CONSTANTS = range(1, 31)


@dataclass(frozen=True)
class Foretold:
    """What was said after some trials, and what came."""

    kind: str
    seed: int
    told: int
    gap: float
    chance: float
    said: int | None
    """How many more trials it takes; None where nobody could say."""
    came: int | None
    """How many it took; None where they were more than there are."""

    @property
    def judged(self) -> bool:
        """Whether something was said that can be judged."""
        if self.said is None:
            return False
        return self.came is not None or LAST - self.told >= max(FACTORS) * self.said

    @property
    def ratio(self) -> float:
        """What came, beside what was said."""
        return math.inf if self.came is None or not self.said else self.came / self.said


def search(name: str, seed: int, asked: Sequence[int] = ASKED, last: int = LAST) -> list[Foretold]:
    """One search, which is asked how long it takes while it goes on."""
    objective = made(name, seed)
    optimizer = Optimizer(objective.space, seed=seed)
    said: list[tuple[int, Stop, int | None]] = []
    gaps: dict[int, np.ndarray] = {}
    for told in range(1, last + 1):
        trial = optimizer.ask()
        optimizer.tell(trial, objective.measured(trial.params))
        if told >= min(asked):
            answers = _answers(optimizer)
            gaps[told] = answers.belief().gaps
            if told in asked:
                ahead = answers.forecast()
                wanted = [stop for stop in STOPS if not _met(gaps[told], stop)]
                said += [(told, s, None if ahead is None else ahead.until(s)) for s in wanted]
    return [
        Foretold(name, seed, told, stop.gap, stop.chance, number, _first(gaps, told, stop))
        for told, stop, number in said
    ]


def _answers(optimizer: Optimizer) -> Answers:
    model = optimizer.subject().model
    assert model is not None
    assert model.answers is not None
    return model.answers


def _met(gaps: np.ndarray, stop: Stop) -> bool:
    return bool(np.mean(gaps <= stop.gap) >= stop.chance)


def _first(gaps: dict[int, np.ndarray], told: int, stop: Stop) -> int | None:
    later = (n - told for n in sorted(gaps) if n > told and _met(gaps[n], stop))
    return next(later, None)


def measure(searches: int, out: Path) -> list[Foretold]:
    """Searches of every kind with seeds from 0 on; those that the file has are not done again."""
    rows = read(out) if out.exists() else []
    done = {(row.kind, row.seed) for row in rows}
    for seed in range(searches):
        for name in KINDS:
            if name not in LEFT_OUT and (name, seed) not in done:
                rows += search(name, seed)
                files.write(out, "".join(json.dumps(asdict(row)) + "\n" for row in rows))
    return [row for row in rows if row.seed < searches]


def read(path: Path) -> list[Foretold]:
    """The rows of a JSON lines file."""
    return [Foretold(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def share(ratios: Iterable[float], factor: float) -> float:
    """The share of ratios within a factor of 1; NaN where there are none."""
    found = [1 / factor - 1e-9 <= ratio <= factor + 1e-9 for ratio in ratios]
    return float(np.mean(found)) if found else math.nan


def constant(rows: Iterable[Foretold], factor: float) -> tuple[float, int]:
    """The best share that saying one and the same number each time would have had, and which."""
    came = [math.inf if row.came is None else row.came for row in rows if row.judged]
    return max((share((c / number for c in came), factor), -number) for number in CONSTANTS)


def table(rows: Sequence[Foretold]) -> str:
    """A line for each kind and for all: how often what was said was about right."""
    head = ["asked", "said", "within 2", "within 3", "too many", "too few"]
    lines = [f"{'':34}" + "".join(f"{cell:>10}" for cell in head)]
    for name in (*KINDS, "all"):
        own = [row for row in rows if name in (row.kind, "all")]
        if not own:
            continue
        ratios = [row.ratio for row in own if row.judged]
        most = max(FACTORS)
        shares = [*(share(ratios, factor) for factor in FACTORS)]
        shares += [float(np.mean([r < 1 / most for r in ratios] or math.nan))]
        shares += [float(np.mean([r > most for r in ratios] or math.nan))]
        counts = [len(own), sum(row.said is not None for row in own)]
        cells = [f"{count:>10}" for count in counts] + [f"{value:>10.2f}" for value in shares]
        lines.append(f"{name:34}{''.join(cells)}")
    for factor in FACTORS:
        best, number = constant(rows, factor)
        lines.append(f"saying {-number} each time, within {factor}: {best:.2f}")
    return "\n".join(lines)
