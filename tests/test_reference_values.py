"""Scaling and mixtures against the numbers of the first edition: see `test_reference`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optpair.gp.mixture import moments, quantile
from optpair.trials.transform import Scaling

with np.load(Path(__file__).parent / "reference" / "functions.npz") as _file:
    KEPT = {key: _file[key] for key in _file.files}
NAMES = sorted(
    {key.split("/")[1] for key in KEPT if key.startswith("scaling/") and key[-2:] == "/y"}
)


@pytest.mark.parametrize("name", NAMES)
def test_scaling(name: str) -> None:
    y, noise_var = KEPT[f"scaling/{name}/y"], KEPT[f"scaling/{name}/noise_var"]
    scaling = Scaling.of(y, warp=not name.endswith("_unwarped"))
    knee = np.nan if scaling.knee is None else scaling.knee
    found = [scaling.loc, scaling.scale, knee, scaling.unit]
    np.testing.assert_allclose(found, KEPT[f"scaling/{name}/scaling"], rtol=1e-12)
    standardised = KEPT[f"scaling/{name}/standardised"]
    np.testing.assert_allclose(scaling.standardise(y), standardised, rtol=1e-12, atol=1e-12)
    # Below the lowest value the way back was an exponential of an exponential; now, a tangent.
    expected, restored = KEPT[f"scaling/{name}/restored"], scaling.restore(KEPT["scaling/z"])
    seen = expected >= y.min() if scaling.knee is not None else np.ones(len(expected), dtype=bool)
    np.testing.assert_allclose(restored[seen], expected[seen], rtol=1e-10)
    assert np.all((restored >= expected)[~seen])
    assert np.all((restored < y.min())[~seen])
    variance = KEPT[f"scaling/{name}/variance"]
    np.testing.assert_allclose(scaling.variance(noise_var, y), variance, rtol=1e-10)


@pytest.mark.parametrize("name", ["wide", "certain"])
def test_mixture(name: str) -> None:
    means, sds = (KEPT[f"mixture/{name}/{part}"][:, None] for part in ("means", "sds"))
    mean, sd = moments(means, sds)
    assert mean[0] == pytest.approx(float(KEPT[f"mixture/{name}/mean"]), rel=1e-12)
    assert sd[0] == pytest.approx(float(KEPT[f"mixture/{name}/sd"]), rel=1e-12)
    for p, expected in zip(
        KEPT[f"mixture/{name}/p"], KEPT[f"mixture/{name}/quantile"], strict=True
    ):
        got = quantile(means, sds, float(p))[0]
        assert got == pytest.approx(expected, rel=1e-12, abs=1e-12)
