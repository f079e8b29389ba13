"""Engines: everything about one problem that is fixed before the first trial.

The steps of the method are functions of an engine, in the other modules of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from optpair.acquisition.registry import Control, Entry
from optpair.cube.cube import Cube
from optpair.cube.finite import all_points
from optpair.cube.region import Region
from optpair.engine import budget, goals
from optpair.engine.earlier import Borrowed
from optpair.engine.model import OutcomeMemory
from optpair.engine.settings import Settings
from optpair.gp.inference import Inference
from optpair.gp.kernels import Curves, Radial, Related
from optpair.gp.noise import Growth
from optpair.gp.process import Process
from optpair.problem.beliefs import Beliefs
from optpair.problem.outcomes import Outcome
from optpair.problem.parameters import Price
from optpair.runtime.shapes import Bool, Float
from optpair.trials.data import Data

AFTER_OTHERS = 3  # trials of the design if there are earlier studies
EXPLOIT, UNMET = 0.1, 0.5  # γ after the first trial that met all constraints, and before
COIN, HYPER, PATHS, SEARCH, WIDER, AHEAD, FOCUS = range(
    7
)  # one stream of randomness for each purpose


@dataclass(frozen=True)
class Engine:
    """The method for one problem: everything that is fixed before the first trial."""

    cube: Cube
    outcomes: Mapping[str, Outcome]
    settings: Settings
    acquisition: Entry | Control
    inference: Inference
    legal: Region | None = None
    """Where queries may be; the whole cube by default."""
    targets: Mapping[int, float] = field(default_factory=dict)
    """The columns of fidelities, and their values where optima are sought."""
    prices: tuple[Price, ...] = ()
    """What trials are assumed to cost if no costs were told."""
    beliefs: Beliefs | None = None
    """The user's belief about the optimum."""
    earlier: Mapping[str, Borrowed] = field(default_factory=dict)
    """What earlier studies contribute to the models of some outcomes."""

    def process_of(self, name: str, known: OutcomeMemory | None = None) -> Process:
        """The model of an outcome before data, with the rows of earlier studies.

        The rows are on the scale of the present values, if those are `known`. So is whether trials
        have several looks: without them, all looks are taken to be equally noisy.
        """
        process, lent = self.process, self.earlier.get(name)
        told = not self.inference.standardises  # a growth may be among known hyperparameters
        if self.prices and (told or (known is not None and known.several)):
            process = replace(process, growth=Growth(self.prices))
        if lent is None:
            return process
        given = lent.alone if known is None else lent.given(known.scaling, known.matches)
        return replace(process, kernel=Related(process.kernel, given))

    @cached_property
    def process(self) -> Process:
        """The model of an outcome before data."""
        kernel = self.settings.kernel
        assert not isinstance(kernel, str)
        if self.targets and isinstance(kernel, Radial):
            kernel = Curves(kernel, tuple(self.targets))
        prior = self.settings.prior
        return Process(
            self.cube.layout.owner,
            kernel,
            prior.under_limits() if self.limited else prior,
            runs=bool(self.targets),
        )

    @property
    def objectives(self) -> tuple[int, ...]:
        """The columns of the objectives."""
        return goals.objectives(self.outcomes.values())

    @property
    def limited(self) -> bool:
        """Whether there are constraints."""
        return len(self.objectives) < len(self.outcomes)

    @property
    def region(self) -> Region:
        """Where queries may be: at every fidelity, if the acquisition function compares them."""
        if isinstance(self.acquisition, Entry) and self.acquisition.looks:
            return self.anywhere
        return self.sought

    @cached_property
    def anywhere(self) -> Region:
        """Where data may have been asked for: at any fidelity."""
        return Region.whole(self.cube) if self.legal is None else self.legal

    def within(self, region: Region) -> Engine:
        """The engine that looks nowhere else."""
        return self if region is self.anywhere else replace(self, legal=region)

    @cached_property
    def sought(self) -> Region:
        """Where optima and answers may be: at the target fidelities."""
        return self.anywhere.fixed(self.targets) if self.targets else self.anywhere

    @property
    def compresses(self) -> bool:
        """Whether bad values are always compressed: with fidelities the data decide."""
        return self.settings.warp and not self.targets

    @property
    def initial(self) -> int:
        """How many trials must be told before the model is used."""
        chosen, cheap = self.settings.initial, len(self.targets)
        tuned = self.cube.parameters - cheap
        usual = (2 * tuned if cheap else tuned) + 1 + (cheap > 0)
        if self.earlier:
            usual = min(usual, AFTER_OTHERS)
        return usual if chosen is None else chosen

    @property
    def free(self) -> int:
        """The columns in which optima differ."""
        return self.cube.dimensions - len(self.targets)

    @property
    def focuses(self) -> bool:
        """Whether most queries are chosen around the best trial, once values are exact."""
        plain = len(self.objectives) == 1 and not self.targets and not self.cube.layout.conditions
        some = budget.focused(self.cube.parameters)
        return plain and some and self.settings.focus and self.inference.standardises

    @property
    def steps(self) -> int:
        """Steps of a climb."""
        return budget.climb_steps(self.settings, self.free)

    def exploit(self, data: Data) -> float:
        """γ: by default 0.1, or 0 if the hyperparameters are known.

        While no trial has met all constraints it is ½. The best predicted point is then the one
        most likely to meet them, and there is no answer until a trial does.
        """
        if self.settings.exploit is not None:
            return self.settings.exploit
        if not self.inference.standardises:
            return 0.0
        met = goals.met(self.outcomes.values(), data) & self.whole(data.points)
        return UNMET if self.limited and not met.any() else EXPLOIT

    def at_target(self, X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n D"]:
        """The same points at the target fidelities."""
        return self._looked_at(X, np.array(list(self.targets.values())))

    def whole(self, X: Float[np.ndarray, "n D"]) -> Bool[np.ndarray, " n"]:
        """Which points are at the target fidelities: only there do values say what is met."""
        return np.asarray((self.at_target(X) == X).all(1))

    def at_cheapest(self, X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n D"]:
        """The same points at the fidelities that cost least."""
        return self._looked_at(X, self.cheapest)

    def _looked_at(
        self, X: Float[np.ndarray, "n D"], level: Float[np.ndarray, " k"]
    ) -> Float[np.ndarray, "n D"]:
        if not self.targets:
            return X
        X = X.copy()
        X[:, list(self.targets)] = level
        return X

    @property
    def cheapest(self) -> Float[np.ndarray, " k"]:
        """The end of each fidelity that costs least: 0, which is `low`, or 1, which is `high`."""
        ends = np.array([np.zeros(self.cube.dimensions), np.ones(self.cube.dimensions)])
        found = [np.argmin(price.log_cost(ends)[0]) for price in self.prices]
        return np.array(found, dtype=np.float64)

    def looks(
        self, region: Region, X: Float[np.ndarray, "n D"], levels: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "n D"]:
        """Points at other fidelities: from 0, which is `low`, to 1, which is `high`."""
        X = X.copy()
        X[:, list(self.targets)] = levels
        return region.made_legal(X)

    @property
    def once(self) -> bool:
        """Whether no point is asked for twice as long as another is left."""
        return self.region.once or self.settings.once

    def known(self, data: Data) -> Float[np.ndarray, "k D"]:
        """The points that are not asked for again, as their exact values are known or pending.

        There are none if values are noisy, unless each point is tried at most once.
        """
        if self.once:
            return data.seen
        return data.settled if data.exact else data.settled[:0]

    def asked_from(self, data: Data) -> Region:
        """Where a search without a model looks: in a table, among the untried rows."""
        return self.region.without(data.seen) if self.region.once else self.region

    @cached_property
    def listed(self) -> Region | None:
        """The region as a table of all its points, where these are few."""
        points = all_points(self.region)
        return None if points is None else replace(self.region, table=points)

    def spent(self, data: Data) -> bool:
        """Whether every point has been tried and none may be tried again."""
        return self.once and self.listed is not None and self.listed.left(data.seen) == 0
