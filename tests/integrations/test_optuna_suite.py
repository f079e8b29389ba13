"""Optuna's own suite for samplers.

It visits six shapes of space, and JES with marginalised hyperparameters takes half a minute to
compile for each. How the sampler behaves towards Optuna is tested with log EI at the mode of the
hyperparameters; the default method passes what visits two shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler
from optuna.testing import pytest_samplers as suite

from optpair import Settings
from optpair.integrations.optuna import JESSampler

TINY = Settings(
    sets=3, pairs=2, features=64, candidates=64, path_candidates=64, starts=2, steps=4, exploit=0.0
)
FLOATS = [FloatDistribution(-1.0, 1.0), FloatDistribution(1e-7, 1.0, log=True)]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


class TestJESSampler(suite.BasicSamplerTestCase, suite.RelativeSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: JESSampler(seed=0, acquisition="logei", hyperparameters="map", settings=TINY)


class TestTheDefaultMethod(suite.RelativeSamplerTestCase, suite.MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: JESSampler(seed=0, settings=replace(TINY, initial=1))

    @pytest.mark.parametrize("x_distribution", FLOATS)
    @pytest.mark.parametrize("y_distribution", FLOATS)
    def test_sample_relative_numerical(
        self,
        sampler: Callable[[], BaseSampler],
        x_distribution: BaseDistribution,
        y_distribution: BaseDistribution,
    ) -> None:
        super().test_sample_relative_numerical(sampler, x_distribution, y_distribution)

    @pytest.mark.parametrize("x_distribution", FLOATS)
    def test_sample_relative_mixed(
        self, sampler: Callable[[], BaseSampler], x_distribution: BaseDistribution
    ) -> None:
        super().test_sample_relative_mixed(sampler, x_distribution)

    test_sample_relative_categorical = None  # another shape
