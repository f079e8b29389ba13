"""Options of the sampler: what may be given, and what to say if it is wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution

from optpair.engine.session import Session, region_of
from optpair.gp.hyperparameters import Hyperparameters
from optpair.integrations.optuna.outcomes import Bounds
from optpair.integrations.optuna.space import Domain, SearchSpace
from optpair.problem.beliefs import Belief
from optpair.problem.limits import Limits, Where
from optpair.problem.outcomes import Objective, Outcome
from optpair.problem.problem import Problem
from optpair.problem.space import Float, Space


@dataclass(frozen=True)
class Options:
    """What a study is modelled with."""

    seed: int
    given: SearchSpace | None
    """The search space, where it is known beforehand."""
    ordinals: frozenset[str]
    limits: Limits
    guesses: Mapping[str, tuple[Any, float | None]]
    noise: float | None
    bounds: Bounds
    """Those of the only objective, or of objectives by name."""
    averages: bool
    """Whether what trials report are running means."""
    engine: Mapping[str, Any]
    """What every session is made with: acquisition, hyperparameters and settings."""
    earlier: list[Any]
    belief: Belief | None = None

    @property
    def distributions(self) -> dict[str, BaseDistribution] | None:
        """The distributions, where they were given."""
        return None if self.given is None else dict(self.given.distributions)

    @property
    def may_look(self) -> bool:
        """Whether steps can be modelled: known hyperparameters are of the parameters alone."""
        return not isinstance(self.engine["hyperparameters"], Hyperparameters)

    def domain(self, known: Mapping[str, BaseDistribution], **more: Any) -> Domain:
        """The modelled parameters among some."""
        if self.given is None:
            return Domain(known, self.ordinals, **more)
        own, shelf = self.given.parameters, self.given.shelf
        return Domain(known, self.ordinals, given=own, shelf=shelf, **more)

    def check(self, outcomes: Mapping[str, Outcome]) -> None:
        """Refuse options that are wrong for such outcomes now, not at the first suggestion."""
        known = self.engine["hyperparameters"]
        d = known.parameters if isinstance(known, Hyperparameters) else 1
        space = Space({f"x{i}": Float(0.0, 1.0) for i in range(d)})
        Session(Problem(space, outcomes), seed=self.seed, **self.engine)
        if not self.limits:
            return
        if self.distributions is None:
            raise ValueError(
                "where needs search_space: without it the first trials are sampled before the "
                "space is known, and may break a limit; give the distributions"
            )
        region_of(self.domain(self.distributions, limits=self.limits).space)


def check_limits(where: Where, given: SearchSpace | None) -> Limits:
    """Those of the space, or those that were given beside it."""
    limits = Limits.parse(where)
    if given is None or not given.limits:
        return limits
    if limits:
        raise ValueError("where is given twice: search_space has limits of its own; leave one out")
    return given.limits


def check_names(given: object) -> frozenset[str]:
    """The names of parameters; one alone would be taken for its letters."""
    if isinstance(given, str) or not isinstance(given, Collection):
        raise TypeError(f"ordinals must be a list of names, like ['batch'], not {given!r}")
    return frozenset(given)


def check_bounds(given: Any) -> Bounds:
    """A pair of ends, or such pairs by the names of objectives."""
    if isinstance(given, Mapping):
        return {name: Objective(bounds=own).bounds for name, own in given.items()}
    return Objective(bounds=given).bounds


def check_flag(name: str, given: Any) -> bool:
    """True or False."""
    if not isinstance(given, bool):
        raise TypeError(f"{name} must be True or False, not {given!r:.80}")
    return given


def check_guesses(
    guess: object, sure: object, known: Mapping[str, BaseDistribution] | None
) -> dict[str, tuple[Any, float | None]]:
    """A value, and how sure it is, of each parameter of which something is believed."""
    for label, given in (("guess", guess), ("sure", sure)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{label} must be a dict by the names of parameters, not {given!r:.80}")
    values, chances = dict(guess or {}), dict(sure or {})  # type: ignore[call-overload]
    for name in chances:
        if name not in values:
            raise ValueError(f"sure has {name!r}, for which there is no guess")
    for name in values:
        if known is not None and name not in known:
            raise ValueError(
                f"guess has {name!r}, which search_space has not: it has {', '.join(known)}"
            )
    return {name: (value, chances.get(name)) for name, value in values.items()}


def check_function(name: str, given: Any) -> Any:
    """What is called with a trial or, for a belief, with parameters, where it is given."""
    if given is not None and not callable(given):
        of = "a dict of parameters" if name == "belief" else "a trial"
        raise TypeError(f"{name} must be a function of {of}, not {given!r:.80}")
    return given
