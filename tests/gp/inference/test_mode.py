"""The mode against a search of SciPy's density from many starts."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.optimize

from gp_cases import KERNELS, N, X
from inference_cases import log_likelihood, on_plane, scipy_log_prior
from optpair.gp.inference import Inference, Mode
from optpair.gp.inference.mode import fit_mode
from optpair.gp.likelihood import Sample
from optpair.runtime.streams import Stream

VALUES = np.sin(5 * X[:, 0]) + X[:, 1]
VALUES = (VALUES - VALUES.mean()) / VALUES.std()
UNKNOWN = np.full(N, np.nan)
SAMPLE = Sample(X, VALUES, UNKNOWN)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_mode_is_scipys(kernel: str) -> None:
    def negative(theta: np.ndarray) -> float:
        if np.any(np.abs(theta) > 20):
            return 1e10
        return -log_likelihood(kernel, theta, X, VALUES, UNKNOWN) - scipy_log_prior(theta)

    process = on_plane(kernel)
    found = fit_mode(SAMPLE, process)
    rng = np.random.default_rng(0)
    starts = rng.normal(size=(4, 6)) * [1.5, 1.5, 0.7, 1.0, 0.5, 1.0] + [0, 0, 0, -4.0, 0, 0]
    starts = starts[:, : process.table.size]
    best = min(scipy.optimize.minimize(negative, s, method="L-BFGS-B").fun for s in starts)
    assert negative(found) < best + 1e-5
    restarted = fit_mode(SAMPLE, process, found)
    assert negative(restarted) <= negative(found) + 1e-9


def test_without_data_it_is_the_priors() -> None:
    nothing = Sample(X[:0], VALUES[:0], UNKNOWN[:0])
    process = on_plane("matern52")
    mode = fit_mode(nothing, process)
    np.testing.assert_allclose(mode, process.table.start(np.zeros(5)), atol=1e-4)


def test_the_way_of_inference() -> None:
    way, process = Mode(), on_plane("mixed")
    assert isinstance(way, Inference)
    assert (way.sets, way.standardises) == (1, True)
    state, mixing = way.update(Stream.of(0), None, SAMPLE, process, N)
    assert mixing is None
    np.testing.assert_array_equal(state, fit_mode(SAMPLE, process))
    again, _ = way.update(Stream.of(1), state, SAMPLE, process, 1)
    np.testing.assert_allclose(again, state, atol=1e-2)
    hypers = way.hyperparameters(state, process)
    assert hypers == process.table.hyperparameters(state[None])
    assert way.wider(Stream.of(0), state, SAMPLE, process) is None
    assert way.rescaled(state, 2.0, 1.0, process) is state


def test_a_state_survives_json() -> None:
    way, process = Mode(), on_plane()
    state = fit_mode(SAMPLE, process)
    back = way.from_json(json.loads(json.dumps(way.to_json(state))), process)
    np.testing.assert_array_equal(back, state)
    with pytest.raises(ValueError, match=r"theta has shape \(3,\), not \(5,\)"):
        way.from_json({"theta": [0.0] * 3}, process)
    with pytest.raises(ValueError, match="theta holds a value that is not finite"):
        way.from_json({"theta": [None] * 5}, process)
    with pytest.raises(KeyError):
        way.from_json({}, process)
