"""The protocol of inference: from a sample and what was found before to hyperparameter sets.

Each way of inference keeps a state of its own between updates (warm chains, the last mode). The
state only makes the next update cheaper: starting anew gives an answer that is as good.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.likelihood import Sample
from optpair.gp.process import Process
from optpair.runtime.streams import Stream


class Found(NamedTuple):
    """What an update has found."""

    state: Any
    mixing: Any = None
    """How the chains mixed, where there are chains."""


@runtime_checkable
class Inference(Protocol):
    """A way to find hyperparameters."""

    @property
    def standardises(self) -> bool:
        """Whether values are standardised first; known hyperparameters have units already."""
        ...

    @property
    def sets(self) -> int:
        """M, the number of sets."""
        ...

    def update(
        self, stream: Stream, state: Any, sample: Sample, process: Process, new: int
    ) -> Found:
        """A state for this sample, with `new` values since the last update; None starts anew."""
        ...

    def rescaled(self, state: Any, ratio: float, offset: float, process: Process) -> Any:
        """The state after y became ratio·y + offset; None if the change is too large to follow."""
        ...

    def hyperparameters(self, state: Any, process: Process) -> Hyperparameters:
        """The sets that a step uses."""
        ...

    def wider(
        self, stream: Stream, state: Any, sample: Sample, process: Process
    ) -> Hyperparameters | None:
        """More sets, for the ends of an answer's interval; None if there are none."""
        ...

    def to_json(self, state: Any) -> Any:
        """A state as a JSON document."""
        ...

    def from_json(self, document: Any, process: Process) -> Any:
        """The state that a document holds; ValueError, KeyError or TypeError if it holds none."""
        ...
