"""Optuna's own suite for samplers.

It visits six shapes of space, and JES with marginalised hyperparameters takes half a minute to
compile for each. What is tested here is how the sampler behaves towards Optuna, so the engine runs
log EI at the mode of the hyperparameters; `test_optuna_sampler.py` has the default method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.testing import pytest_samplers as suite

from optpair import Settings
from optpair.integrations.optuna import JESSampler

TINY = Settings(
    sets=3, pairs=2, features=64, candidates=64, path_candidates=64, starts=2, steps=4, exploit=0.0
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


class TestJESSampler(
    suite.BasicSamplerTestCase,
    suite.RelativeSamplerTestCase,
    suite.SingleOnlySamplerTestCase,
):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: JESSampler(seed=0, acquisition="logei", hyperparameters="map", settings=TINY)
