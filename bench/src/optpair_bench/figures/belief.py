"""Belief about a function of one variable after seven noisy values, which pictures are about."""

from __future__ import annotations

import numpy as np

from optpair.cube.candidates import ANCHORS, Screening
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.gp import Hyperparameters, Paths, Posterior, condition, sample_paths
from optpair.optima import Best, Optima
from optpair.runtime.streams import Stream

HYPERS = Hyperparameters([[0.11]], [1.0], [0.04], [0.0])
X = np.array([0.06, 0.2, 0.3, 0.36, 0.55, 0.62, 0.9])
Y = np.array([-0.7, 0.2, 1.05, 0.75, -0.5, -0.2, 0.15])
PAIRS = 256
SHOWN = 12


def belief() -> tuple[Posterior, Paths, Optima]:
    """A posterior after seven noisy values, its sample paths and their optimal pairs."""
    posterior, cube = condition(HYPERS, X[:, None], Y), Cube.box(1)
    paths = sample_paths(posterior, PAIRS, features=512)
    screening = Screening.of(Stream.of(1), cube, 256)
    anchors = posterior.best_data(ANCHORS)
    found = Best().optima((paths,), Region.whole(cube), screening, anchors, steps=16)
    return posterior, paths, found
