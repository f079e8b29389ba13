"""What was asked and told: trials in the user's units, and the arrays that the engine sees.

Signs, names and failures are dealt with here, once: right of this module everything maximises,
on the unit cube, on standardised values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsFloat, get_args

import numpy as np
from jaxtyping import Float

from optpair.space import Space

Direction = Literal["minimize", "maximize"]
State = Literal["pending", "told", "failed"]


@dataclass(frozen=True)
class Trial:
    """One evaluation: its parameters, and what came of it."""

    id: int
    params: Mapping[str, Any]
    state: State = "pending"
    value: float | None = None
    noise_var: float | None = None


@dataclass(frozen=True)
class Scaling:
    """standardised = (y − loc) / scale."""

    loc: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, y: Float[np.ndarray, " n"]) -> Scaling:
        """Zero mean and unit variance, for values of any size; constant values get any scale."""
        largest = float(np.max(np.abs(y)))
        if largest == 0.0:
            return cls()
        relative = y / largest
        spread = float(np.std(relative))
        # Below this the differences are round-off of the values themselves.
        spread = spread if spread > 1e-13 else 1.0
        return cls(float(np.mean(relative)) * largest, max(spread * largest, 1e-307))

    def standardise(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """From raw values to the engine's."""
        return y / self.scale - self.loc / self.scale

    def variance(self, noise_var: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """From raw variances to the engine's, without squaring a huge scale."""
        return noise_var / self.scale / self.scale

    def restore(self, y: Any) -> Any:
        """From the engine's values to raw ones."""
        return self.loc + self.scale * np.asarray(y)


@dataclass(frozen=True)
class Observations:
    """The history as arrays on the cube, to be maximised; NaN noise_var means unknown."""

    X: Float[np.ndarray, "n D"]
    y: Float[np.ndarray, " n"]
    noise_var: Float[np.ndarray, " n"]
    pending: Float[np.ndarray, "p D"]
    failed: Float[np.ndarray, "m D"]


class History:
    """Every trial of a study. A change that is refused leaves it as it was."""

    def __init__(self, space: Space, direction: Direction) -> None:
        if not isinstance(space, Space):
            raise TypeError(f"space must be a Space, not {type(space).__name__}")
        if direction not in get_args(Direction):
            raise ValueError(f"direction must be 'minimize' or 'maximize', not {direction!r}")
        self.space = space
        self.direction: Direction = direction
        self._trials: dict[int, Trial] = {}
        self._points: dict[int, Float[np.ndarray, " D"]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._trials.values())

    def __getitem__(self, trial_id: int) -> Trial:
        return self._trials[trial_id]

    @property
    def sign(self) -> float:
        """What raw values are multiplied by, so that larger is better."""
        return -1.0 if self.direction == "minimize" else 1.0

    def count(self, state: State) -> int:
        """How many trials are in a state."""
        return sum(trial.state == state for trial in self)

    def add(self, params: Mapping[str, Any]) -> Trial:
        """A new pending trial."""
        clean = self.space.check(params)
        trial = Trial(self._next, clean)
        self._points[trial.id] = self.space.encode(clean)
        self._trials[trial.id] = trial
        self._next += 1
        return trial

    def tell(
        self,
        trial: Trial | int | Mapping[str, Any],
        value: SupportsFloat | None = None,
        *,
        noise_var: SupportsFloat | None = None,
        failed: bool = False,
    ) -> Trial:
        """Record a value or a failure; parameters instead of a trial add the user's own point."""
        if failed:
            if value is not None or noise_var is not None:
                raise ValueError("a failed trial has no value: pass failed=True alone")
            outcome: dict[str, Any] = {"state": "failed"}
        else:
            outcome = {"state": "told", "value": check_value(value)}
            if noise_var is not None:
                outcome["noise_var"] = check_noise_var(noise_var)
        if isinstance(trial, Mapping):
            trial = self.add(trial)
        told = replace(self.pending(trial), **outcome)
        self._trials[told.id] = told
        return told

    def cancel(self, trial: Trial | int) -> None:
        """Forget a pending trial."""
        gone = self.pending(trial)
        del self._trials[gone.id], self._points[gone.id]

    def pending(self, trial: Trial | int) -> Trial:
        """The pending trial that is meant, or an error that says why there is none."""
        if not isinstance(trial, Trial | int | np.integer) or isinstance(trial, bool):
            raise TypeError(
                f"trial must be what ask() returned, its id, or a dict of parameters, not {trial!r}"
            )
        trial_id = trial.id if isinstance(trial, Trial) else int(trial)
        known = self._trials.get(trial_id)
        if known is None or (isinstance(trial, Trial) and trial.params != known.params):
            raise ValueError(f"trial {trial_id} is unknown here: never asked, or cancelled")
        if known.state != "pending":
            raise ValueError(
                f"trial {trial_id} was already told ({_outcome(known)}); to add another "
                "evaluation of the same point, tell its parameters: tell(trial.params, value)"
            )
        return known

    def best_observed(self) -> Trial | None:
        """The told trial with the best, perhaps luckiest, value."""
        told = [trial for trial in self if trial.value is not None]
        return max(told, key=lambda trial: self.sign * float(trial.value or 0.0), default=None)

    def observations(self) -> Observations:
        """The arrays that the engine sees, in the order of the trials' ids."""
        told = [trial for trial in self if trial.state == "told"]
        return Observations(
            X=self._stack(told),
            y=self.sign * np.array([trial.value for trial in told], dtype=np.float64),
            noise_var=np.array(
                [np.nan if t.noise_var is None else t.noise_var for t in told], dtype=np.float64
            ),
            pending=self._stack([trial for trial in self if trial.state == "pending"]),
            failed=self._stack([trial for trial in self if trial.state == "failed"]),
        )

    def _stack(self, trials: list[Trial]) -> Float[np.ndarray, "n D"]:
        rows = [self._points[trial.id] for trial in trials]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.space.cube.dimensions)

    def to_json(self) -> dict[str, Any]:
        """A JSON document that `from_json` turns back into the same history."""
        trials = [
            {
                "id": trial.id,
                "params": dict(trial.params),
                "state": trial.state,
                "value": trial.value,
                "noise_var": trial.noise_var,
            }
            for trial in self
        ]
        return {
            "space": self.space.to_json(),
            "direction": self.direction,
            "next": self._next,
            "trials": trials,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> History:
        """The history that a document holds; ValueError, KeyError or TypeError where it is none."""
        history = cls(Space.from_json(document["space"]), document["direction"])
        for row in document["trials"]:
            if not isinstance(row["id"], int) or row["id"] < history._next:
                raise ValueError(f"trial ids must increase, {row['id']!r} does not")
            history._next = row["id"]
            trial = history.add(row["params"])
            if row["state"] == "told":
                history.tell(trial, row["value"], noise_var=row["noise_var"])
            elif row["state"] == "failed":
                history.tell(trial, failed=True)
            elif row["state"] != "pending":
                raise ValueError(f"trial {trial.id} has an unknown state {row['state']!r}")
        if not isinstance(document["next"], int) or document["next"] < history._next:
            raise ValueError(f"the next trial's id {document['next']!r} is taken")
        history._next = document["next"]
        return history


def _outcome(trial: Trial) -> str:
    return "failed" if trial.state == "failed" else f"value {trial.value}"


def check_value(value: object, name: str = "value") -> float:
    """A finite float, or an error that says what to do instead."""
    number = _as_float(value, name)
    if not math.isfinite(number):
        raise ValueError(
            f"{name} must be finite, not {number}; if the evaluation failed, say so: "
            "tell(trial, failed=True)"
        )
    return number


def check_noise_var(value: object) -> float:
    """A finite variance, zero allowed."""
    number = _as_float(value, "noise_var")
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"noise_var must be a finite variance ≥ 0, not {number}")
    return number


def _as_float(value: object, name: str) -> float:
    """Numbers and zero-dimensional arrays of them; nothing else."""
    refused = isinstance(value, bool | np.bool_ | str | bytes | complex | np.complexfloating)
    if refused or value is None or getattr(value, "ndim", 0) != 0:
        shape = f" of shape {value.shape}" if hasattr(value, "shape") else ""
        raise TypeError(
            f"{name} must be one real number, not {type(value).__name__}{shape} ({value!r})"
        )
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(
            f"{name} must be one real number, not {type(value).__name__} ({value!r})"
        ) from error
