"""Outcomes of a trial: what is measured, and what is wanted of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

Direction = Literal["minimize", "maximize"]


@dataclass(frozen=True)
class Objective:
    """An outcome to be made as small or as large as possible."""

    direction: Direction = "minimize"

    def __post_init__(self) -> None:
        if not isinstance(self.direction, str) or self.direction not in get_args(Direction):
            raise ValueError(f"direction must be 'minimize' or 'maximize', not {self.direction!r}")

    @property
    def sign(self) -> float:
        """What values are multiplied by, so that larger is better; and back again."""
        return -1.0 if self.direction == "minimize" else 1.0

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs to build an equal one."""
        return {"kind": "Objective", "direction": self.direction}


def outcome_from_json(document: Any) -> Objective:
    """The outcome that `to_json` described."""
    if not isinstance(document, dict) or document.get("kind") != "Objective":
        raise ValueError(f"{document!r} is no outcome")
    return Objective(document["direction"])
