"""Known hyperparameters: nothing is inferred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.inference.base import Found
from optpair.gp.likelihood import Sample
from optpair.gp.process import Process
from optpair.runtime.streams import Stream


@dataclass(frozen=True)
class Known:
    """Hyperparameters that are given, in the units of what is maximised."""

    hypers: Hyperparameters

    @property
    def standardises(self) -> bool:
        """They have units already."""
        return False

    @property
    def sets(self) -> int:
        """M, the number of sets."""
        return self.hypers.sets

    def update(
        self, stream: Stream, state: Any, sample: Sample, process: Process, new: int
    ) -> Found:
        """Nothing to do."""
        return Found({})

    def rescaled(self, state: Any, ratio: float, offset: float, process: Process) -> Any:
        """Nothing changes."""
        return state

    def hyperparameters(self, state: Any, process: Process) -> Hyperparameters:
        """Those given."""
        return self.hypers

    def wider(
        self, stream: Stream, state: Any, sample: Sample, process: Process
    ) -> Hyperparameters | None:
        """There are no more."""
        return None

    def to_json(self, state: Any) -> Any:
        """Nothing to keep."""
        return {}

    def from_json(self, document: Any, process: Process) -> Any:
        """Nothing was kept."""
        if document != {}:
            raise ValueError(f"known hyperparameters have no state, not {document!r}")
        return {}
