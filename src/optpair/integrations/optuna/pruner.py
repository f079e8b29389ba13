"""The pruner: `create_study(sampler=sampler, pruner=JESPruner())`."""

from __future__ import annotations

from optuna import Study
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial

from optpair.integrations.optuna.sampler import JESSampler
from optpair.trials.numbers import shown

COMPLETE = 4


class JESPruner(BasePruner):
    """Ends a trial early if a new one would teach more about the optimum per step.

    Whether a trial continues is decided when it has reported a third, a ninth, … of the steps that
    completed trials have. It continues while it may be the best of all at its end (its prediction
    is at least the best one, to which it is half a standard deviation closer as long as trials have
    had at most half of the steps of whole ones), or while the next look at it gains at least as
    much per step as the best new trial. Whatever is predicted, it is never ended before
    there are more completed trials than parameters, nor while no completed trial has had the same
    parameters: a branch inside an `if` has at least one whole trial.

    The model learns from what pruned trials reported, at the steps where they did; their last value
    does not count as a final one.

    Args:
        complete: how many trials must be complete before the first one is pruned, at least 1.
        sampler: the sampler whose model is asked; by default the study's own or, if that is of
            another kind, a new `JESSampler`.

    Examples:
        >>> import optuna
        >>> from optpair.integrations.optuna import JESPruner, JESSampler
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=JESSampler(seed=0), pruner=JESPruner())
        >>> def objective(trial):
        ...     x = trial.suggest_float("x", -1, 1)
        ...     for epoch in range(9):
        ...         trial.report(x**2 + 1 / (1 + epoch), epoch)
        ...         if trial.should_prune():
        ...             raise optuna.TrialPruned
        ...     return x**2
        >>> study.optimize(objective, n_trials=3)
        >>> len(study.trials)
        3
    """

    def __init__(self, complete: int = COMPLETE, sampler: JESSampler | None = None) -> None:
        if isinstance(complete, bool) or not isinstance(complete, int):
            raise TypeError(f"complete must be an int of at least 1, not {shown(complete)}")
        if complete < 1:
            raise ValueError(f"complete must be an int of at least 1, not {complete!r}")
        if sampler is not None and not isinstance(sampler, JESSampler):
            raise TypeError(f"sampler must be a JESSampler or left out, not {shown(sampler)}")
        self._complete, self._sampler = complete, sampler

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether the trial is to end now."""
        if self._sampler is None:
            own = study.sampler
            self._sampler = own if isinstance(own, JESSampler) else JESSampler(seed=0)
        return not self._sampler.goes_on(study, trial, self._complete)
