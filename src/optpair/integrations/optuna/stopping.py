"""A callback that ends a study: `study.optimize(f, 100, callbacks=[StopCallback(Stop(0.01))])`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import optuna
from optuna import Study
from optuna.trial import FrozenTrial

from optpair.integrations.optuna.sampler import JESSampler
from optpair.problem.stop import Stop, check_stop

_log = optuna.logging.get_logger("optuna.optpair")


class StopCallback:
    """Stops `study.optimize` once hardly anything is left to be won.

    Args:
        stop: how little may be left, and how likely that has to be.
        sampler: the sampler whose model is asked; by default the study's own or, if that is of
            another kind, a new `JESSampler`.
        context: a value for each `Context` of the search space, for which that is asked.
    """

    def __init__(
        self,
        stop: Stop,
        sampler: JESSampler | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        self._stop = check_stop(stop)
        if sampler is not None and not isinstance(sampler, JESSampler):
            raise TypeError(f"sampler must be a JESSampler or left out, not {sampler!r:.80}")
        self._sampler, self._context = sampler, context

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """What Optuna calls after every trial."""
        if self._sampler is None:
            own = study.sampler
            self._sampler = own if isinstance(own, JESSampler) else JESSampler(seed=0)
        if self._sampler.done(study, self._stop, context=self._context):
            _log.info(f"The search is over: {self._stop}.")
            study.stop()
