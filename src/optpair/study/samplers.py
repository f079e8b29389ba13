"""Who suggests: the engine, or, where JAX is not wanted, points that only fill the space."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna import Study
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial

from optpair.default import FILLING
from optpair.study.config import StudyError, StudyFile

if TYPE_CHECKING:
    from optpair.integrations.optuna import JESSampler


def make_sampler(file: StudyFile) -> BaseSampler:
    """The sampler that the file names."""
    if file.sampler in FILLING:
        return FillingSampler(file.sampler, file.seed, file.space)
    return engine_sampler(file, file.sampler)


def engine_sampler(file: StudyFile, acquisition: str) -> JESSampler:
    """The sampler over the engine, with the file's seed, space and settings."""
    from optpair.integrations.optuna import JESSampler
    from optpair.settings import Settings

    unknown = [name for name in file.settings if name not in Settings.__dataclass_fields__]
    if unknown:
        raise StudyError(
            f"{file.path.name}: [settings] has an unknown key {unknown[0]!r}. "
            f"It may have {', '.join(Settings.__dataclass_fields__)}"
        )
    try:
        return JESSampler(
            seed=file.seed,
            search_space=file.space,
            acquisition=acquisition,
            settings=Settings(**file.settings),
        )
    except (TypeError, ValueError) as error:
        raise StudyError(
            f"{file.path.name}: {error} ([study] sampler may also be sobol or random)"
        ) from error


class FillingSampler(BaseSampler):
    """One sequence of points for all workers: a trial's number is its place in it.

    kind: `sobol` is scrambled and spreads out; `random` is uniform.
    """

    def __init__(self, kind: str, seed: int, space: Mapping[str, BaseDistribution]) -> None:
        self._kind, self._seed = kind, seed
        self._space = {name: d for name, d in space.items() if not d.single()}

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All parameters that have more than one value."""
        return self._space

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The point with the trial's number."""
        point = self._point(len(search_space), trial.number)
        return {
            name: at(distribution, float(u))
            for (name, distribution), u in zip(search_space.items(), point, strict=True)
        }

    def _point(self, dimensions: int, number: int) -> np.ndarray:
        if self._kind == "random":
            return np.random.default_rng([self._seed, number]).uniform(size=dimensions)
        from scipy.stats.qmc import Sobol  # takes a second to import

        sequence = Sobol(dimensions, scramble=True, rng=self._seed)
        if number:  # SciPy cannot skip nothing
            sequence.fast_forward(number)
        return np.asarray(sequence.random(1)[0])

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        """At random; only for parameters that the file does not have."""
        return RandomSampler().sample_independent(study, trial, param_name, param_distribution)


def at(distribution: BaseDistribution, u: float) -> Any:
    """The value at a share u, in [0, 1), of a distribution."""
    d = distribution
    if isinstance(d, CategoricalDistribution):
        return d.choices[int(u * len(d.choices))]
    assert isinstance(d, FloatDistribution | IntDistribution)
    if d.step is not None and not d.log:
        levels = round((d.high - d.low) / d.step) + 1
        value = d.low + int(u * levels) * d.step
    else:
        end = d.high + 1 if isinstance(d, IntDistribution) else d.high
        value = d.low * math.exp(u * math.log(end / d.low)) if d.log else d.low + u * (end - d.low)
    value = int(value) if isinstance(d, IntDistribution) else value
    return min(max(value, d.low), d.high)
