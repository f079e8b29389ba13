"""Belief about a function of one variable after seven noisy values, which pictures are about."""

from __future__ import annotations

import jax
import numpy as np
from optpair.maximize import Search
from optpair.pairs import ANCHORS, OptimalPairs, optima
from optpair.runtime import Stream

from optpair.cube import Cube
from optpair.gp import Hyperparameters, condition
from optpair.gp import paths as gp_paths
from optpair.gp.paths import Paths
from optpair.gp.posterior import Posterior

HYPERS = Hyperparameters([[0.11]], [1.0], [0.04], [0.0])
X = np.array([0.06, 0.2, 0.3, 0.36, 0.55, 0.62, 0.9])
Y = np.array([-0.7, 0.2, 1.05, 0.75, -0.5, -0.2, 0.15])
PAIRS = 256
SHOWN = 12


def belief() -> tuple[Posterior, Paths, OptimalPairs]:
    """A posterior after seven noisy values, its sample paths and their optimal pairs."""
    posterior = condition(HYPERS, X[:, None], Y)
    paths = gp_paths.sample(0, posterior, paths=PAIRS, features=512)
    search = Search.of(Stream.of(1), Cube.box(1), 256, ANCHORS)
    compiled = jax.jit(optima, static_argnames="steps")
    return posterior, paths, compiled(paths, Cube.box(1), search, steps=16)
