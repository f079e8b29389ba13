"""Leave-one-out predictions: the closed form against fits without each observation."""

from __future__ import annotations

import numpy as np
import pytest

from optpair import Hyperparameters, gp


@pytest.mark.parametrize("known", [False, True], ids=["inferred noise", "known noise"])
def test_left_out_is_what_fits_without_each_value_predict(known: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(9, 2)), rng.normal(size=9)
    hypers = Hyperparameters(
        np.array([[0.3, 0.5], [1.0, 0.2]]), np.array([1.0, 2.0]), np.array([0.1, 0.01]),
        np.array([0.0, 0.4]),
    )  # fmt: skip
    noise_var = rng.uniform(0.01, 0.2, size=9) if known else np.full(9, np.nan)
    means, variance = gp.condition(hypers, X, y, noise_var=noise_var).left_out()
    for i in range(9):
        others = np.arange(9) != i
        rest = gp.condition(hypers, X[others], y[others], noise_var=noise_var[others])
        mean, var = rest.predict(X[[i]])
        own = noise_var[i] if known else hypers.noise
        assert means[:, i] == pytest.approx(mean[:, 0], rel=1e-9, abs=1e-9)
        assert variance[:, i] == pytest.approx(var[:, 0] + own, rel=1e-9)
