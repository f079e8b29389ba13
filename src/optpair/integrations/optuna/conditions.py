"""Conditions of a study's parameters, learnt from which of them appear together.

Optuna is not told that a parameter depends on another: an objective just asks for it, or not. A
parameter that some trials lack is taken to depend on a discrete one, its parent, if the parent's
values in the trials that have it are not among those in the trials that lack it. Of several such
parents the one that fewest trials have is the closest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial

Learnt = dict[str, tuple[str, tuple[Any, ...]]]
"""By parameter: its parent, and the parent's values with which it was seen, as Optuna stores them.
"""


class Shown(NamedTuple):
    """What trials show of a study's space."""

    distributions: dict[str, BaseDistribution]
    """Of the parameters that every trial has, and of those whose absence a condition explains."""
    conditions: Learnt


def learn_from(trials: Sequence[FrozenTrial], whole: Sequence[FrozenTrial]) -> Shown:
    """What trials show, some of which were pruned, or else what the whole ones among them show.

    A pruned trial may lack a parameter that it had not asked for yet, which no condition explains.
    """
    found: dict[str, BaseDistribution] = {}
    conditions: Learnt = {}
    for some in (whole, trials):
        same = alike(some)
        learnt = learn(some, same)
        for name, distribution in same.items():
            if name in learnt or all(name in trial.params for trial in some):
                found[name] = distribution
                conditions.pop(name, None)
        conditions |= learnt
    return Shown(dict(sorted(found.items())), conditions)


def alike(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters that have the same distribution in all trials that have them."""
    found: dict[str, BaseDistribution] = {}
    unlike: set[str] = set()
    for trial in trials:
        for name, distribution in trial.distributions.items():
            if found.setdefault(name, distribution) != distribution:
                unlike.add(name)
    return {name: d for name, d in found.items() if name not in unlike}


def learn(trials: Sequence[FrozenTrial], distributions: Mapping[str, BaseDistribution]) -> Learnt:
    """The conditions of those parameters that some trials lack, where one explains it."""
    counts = {name: sum(name in trial.params for trial in trials) for name in distributions}
    known = [name for name in distributions if counts[name] == len(trials)]
    learnt: Learnt = {}
    for name in sorted(distributions, key=lambda name: (-counts[name], name)):
        if counts[name] == len(trials):
            continue
        parents = [p for p in known if counts[p] > counts[name] and _decides(distributions[p])]
        for parent in sorted(parents, key=lambda p: (counts[p], p)):
            values = _explains(trials, parent, name)
            if values is not None:
                learnt[name] = parent, values
                known.append(name)
                break
    return learnt


def _decides(distribution: BaseDistribution) -> bool:
    discrete = isinstance(distribution, CategoricalDistribution | IntDistribution)
    return discrete and not distribution.single()


def _explains(trials: Sequence[FrozenTrial], parent: str, name: str) -> tuple[Any, ...] | None:
    """The parent's values with which a parameter was seen; None where others say otherwise."""
    having: set[float] = set()
    lacking: set[float] = set()
    for trial in trials:
        if parent in trial.params:
            distribution = trial.distributions[parent]
            value = distribution.to_internal_repr(trial.params[parent])
            (having if name in trial.params else lacking).add(value)
        elif name in trial.params:
            return None
    return None if having & lacking else tuple(sorted(having))
