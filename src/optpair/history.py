"""What was asked and told: trials in the user's units, and the arrays that the engine sees.

Signs, names and failures are dealt with here, once: right of this module everything maximises,
on the unit cube, on standardised values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NoReturn, SupportsFloat, get_args

import numpy as np
from jaxtyping import Float

from optpair.default import LARGEST
from optpair.space import Space

Direction = Literal["minimize", "maximize"]
State = Literal["pending", "told", "failed"]
FAILED = "if the evaluation failed, say so: tell(trial, failed=True)"


class Params(dict[str, Any]):
    """A dict that cannot be changed: what a history was told stays what it was.

    >>> Params(x=1.0) | {"x": 2.0}
    {'x': 2.0}
    """

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("a trial's params are read-only; change a copy: dict(trial.params)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Params], tuple[dict[str, Any]]]:
        return Params, (dict(self),)


@dataclass(frozen=True)
class Trial:
    """One evaluation: its parameters, which are read-only, and what came of it."""

    id: int
    params: Mapping[str, Any]
    state: State = "pending"
    value: float | None = None
    noise_var: float | None = None

    def __hash__(self) -> int:
        return hash(self.id)


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
            raise TypeError(
                f"space must be a Space, like Space({{'x': Float(0, 1)}}), not {_shown(space)}"
            )
        if not isinstance(direction, str) or direction not in get_args(Direction):
            raise ValueError(f"direction must be 'minimize' or 'maximize', not {direction!r}")
        self.space = space
        self.direction: Direction = direction
        self._trials: dict[int, Trial] = {}
        self._points: dict[int, Float[np.ndarray, " D"]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(list(self._trials.values()))  # as of now, whatever other threads add

    def __getitem__(self, trial_id: int) -> Trial:
        return self._trials[trial_id]

    @property
    def sign(self) -> float:
        """What raw values are multiplied by, so that larger is better."""
        return -1.0 if self.direction == "minimize" else 1.0

    @property
    def points(self) -> Mapping[int, Float[np.ndarray, " D"]]:
        """The points of the cube that stand for the trials, by id."""
        return MappingProxyType(self._points)

    def count(self, state: State) -> int:
        """How many trials are in a state."""
        return sum(trial.state == state for trial in self)

    def add(self, params: Mapping[str, Any]) -> Trial:
        """A new pending trial."""
        clean = Params(self.space.check(params))
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
        """Record a value or a failure; parameters instead of a trial add the user's own point.

        Parameters of a pending trial mean that trial, the first where there are several.
        """
        outcome = _check_outcome(value, noise_var, failed)
        if isinstance(trial, Mapping):
            trial = self._pending_at(trial) or self.add(trial)
        told = replace(self.pending(trial), **outcome)
        self._trials[told.id] = told
        return told

    def _pending_at(self, params: Mapping[str, Any]) -> Trial | None:
        """The first pending trial with these parameters."""
        x = self.space.encode(params)
        out = (trial for trial in self if trial.state == "pending")
        return next((trial for trial in out if np.array_equal(self._points[trial.id], x)), None)

    def revise(
        self,
        trial: Trial | int,
        value: SupportsFloat | None = None,
        *,
        noise_var: SupportsFloat | None = None,
        failed: bool = False,
    ) -> Trial:
        """Record another value or failure of a trial in place of what was told before."""
        outcome = _check_outcome(value, noise_var, failed)
        known = self.known(trial)
        if known.state == "pending":
            raise ValueError(f"trial {known.id} is pending: tell it, there is nothing to revise")
        self._trials[known.id] = replace(known, **outcome)
        return self._trials[known.id]

    def cancel(self, trial: Trial | int) -> None:
        """Forget a pending trial."""
        gone = self.pending(trial)
        del self._trials[gone.id], self._points[gone.id]

    def pending(self, trial: Trial | int) -> Trial:
        """The pending trial that is meant, or an error that says why there is none."""
        known = self.known(trial)
        if known.state != "pending":
            raise ValueError(
                f"trial {known.id} was already told ({_outcome(known)}); to correct that, "
                "revise(trial, value); to add another evaluation of the same point, tell its "
                "parameters: tell(trial.params, value)"
            )
        return known

    def known(self, trial: Trial | int) -> Trial:
        """The trial that is meant, as it is now, or an error that says why there is none."""
        if isinstance(trial, Mapping):
            raise TypeError(
                "trial must be what ask() returned, or its id: parameters do not say which is meant"
            )
        if not isinstance(trial, Trial | int | np.integer) or isinstance(trial, bool):
            raise TypeError(
                "trial must be what ask() returned, its id, or a dict of parameters, not "
                + _shown(trial)
            )
        trial_id = trial.id if isinstance(trial, Trial) else int(trial)
        known = self._trials.get(trial_id)
        if known is None:
            raise ValueError(
                f"trial {_shown(trial_id)} is unknown here: never asked, or cancelled; to add a "
                "value all the same, tell its parameters: tell(trial.params, value)"
            )
        if isinstance(trial, Trial) and trial.params != known.params:
            raise ValueError(
                f"trial {trial_id} with {dict(trial.params)} is of another optimizer: here it is "
                f"{dict(known.params)}; to add its value, tell its parameters: "
                "tell(trial.params, value)"
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
            history._restore(row)
        history._next = history._check_id(document["next"])
        return history

    def _restore(self, row: Mapping[str, Any]) -> None:
        self._next = self._check_id(row["id"])
        trial = self.add(row["params"])
        value, noise_var = row["value"], row["noise_var"]
        if row["state"] in ("told", "failed"):
            self.tell(trial, value, noise_var=noise_var, failed=row["state"] == "failed")
        elif row["state"] != "pending" or value is not None or noise_var is not None:
            raise ValueError(f"trial {trial.id} has state {row['state']!r} and value {value!r}")

    def _check_id(self, trial_id: object) -> int:
        if isinstance(trial_id, bool) or not isinstance(trial_id, int) or trial_id < self._next:
            raise ValueError(f"trial ids must be ints that increase, {trial_id!r} does not")
        return trial_id


def _outcome(trial: Trial) -> str:
    return "failed" if trial.state == "failed" else f"value {trial.value}"


def _check_outcome(value: object, noise_var: object, failed: object) -> dict[str, Any]:
    """What `tell` changes in a trial, checked before anything is changed."""
    if not isinstance(failed, bool | np.bool_):
        raise TypeError(f"failed must be True or False, not {_shown(failed)}")
    if failed:
        if value is not None or noise_var is not None:
            raise ValueError("a failed trial has no value: pass failed=True alone")
        return {"state": "failed", "value": None, "noise_var": None}
    known = None if noise_var is None else check_noise_var(noise_var)
    return {"state": "told", "value": check_value(value), "noise_var": known}


def check_value(value: object) -> float:
    """A finite float, or an error that says what to do instead."""
    number = as_number(value, "value", FAILED)
    if not abs(number) <= LARGEST:  # NaN too
        raise ValueError(
            f"value must be finite and within ±{LARGEST:g}, not {_shown(value)}; {FAILED}"
        )
    return number


def check_noise_var(value: object) -> float:
    """A finite variance, zero allowed."""
    number = as_number(value, "noise_var")
    if not math.isfinite(number) or number < 0:
        raise ValueError(
            f"noise_var must be a finite variance ≥ 0, not {_shown(value)}; leave it out where the "
            "noise is unknown"
        )
    return number


def as_number(value: object, name: str, without: str = "") -> float:
    """The float that a number or a zero-dimensional array stands for, perhaps NaN or infinite.

    `without` is the way out where there is none.
    """
    plain = value
    if getattr(value, "ndim", None) == 0 and value is not np.ma.masked:
        plain = getattr(value, "item", lambda: value)()
    refused = isinstance(plain, bool | str | bytes | bytearray | complex | np.complexfloating)
    if not refused and getattr(plain, "ndim", 0) == 0 and plain is not np.ma.masked:
        try:
            return float(plain)  # type: ignore[arg-type]
        except OverflowError:  # an int or a fraction beyond float64
            return math.inf if plain > 0 else -math.inf  # type: ignore[operator]
        except (TypeError, ValueError, RuntimeError):
            pass
    shape = f" of shape {value.shape}" if hasattr(value, "shape") else ""
    hint = f"; {without}" if value is None and without else ""
    raise TypeError(
        f"{name} must be one real number, not {type(value).__name__}{shape} ({_shown(value)}){hint}"
    )


def _shown(value: object) -> str:
    """A short repr: of long arrays, and of ints that Python refuses to print."""
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 80 else f"{text[:60]}… ({type(value).__name__})"
