"""Outcomes of a trial: what is measured, and what is wanted of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

Direction = Literal["minimize", "maximize"]

MOST_NOISE = 1e150
"""A standard deviation beyond this has no finite square."""


@dataclass(frozen=True)
class Objective:
    """An outcome to be made as small or as large as possible."""

    direction: Direction = "minimize"
    noise: float | None = None
    """The standard deviation of every value's noise, 0 where values are exact; None where it is
    not known."""

    def __post_init__(self) -> None:
        if not isinstance(self.direction, str) or self.direction not in get_args(Direction):
            raise ValueError(f"direction must be 'minimize' or 'maximize', not {self.direction!r}")
        if self.noise is not None:
            object.__setattr__(self, "noise", check_noise(self.noise))

    @property
    def sign(self) -> float:
        """What values are multiplied by, so that larger is better; and back again."""
        return -1.0 if self.direction == "minimize" else 1.0

    @property
    def noise_var(self) -> float | None:
        """The variance of every value's noise, where it is known."""
        return None if self.noise is None else self.noise * self.noise

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs to build an equal one."""
        known = {} if self.noise is None else {"noise": self.noise}
        return {"kind": "Objective", "direction": self.direction} | known


def check_noise(value: object) -> float:
    """A standard deviation as a plain float, zero allowed."""
    accepted = (
        f"None, where the noise is not known, or its standard deviation from 0 to {MOST_NOISE:g}"
    )
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise TypeError(f"noise must be {accepted}, not {value!r:.80}")
    if not 0 <= plain <= MOST_NOISE:  # NaN too
        raise ValueError(f"noise must be {accepted}, not {value!r:.80}")
    return float(plain)


def outcome_from_json(document: Any) -> Objective:
    """The outcome that `to_json` described."""
    if not isinstance(document, dict) or document.get("kind") != "Objective":
        raise ValueError(f"{document!r} is no outcome")
    return Objective(document["direction"], document.get("noise"))
