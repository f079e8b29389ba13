"""Known hyperparameters: nothing is inferred, nothing kept."""

from __future__ import annotations

import numpy as np
import pytest

from gp_cases import HYPERS, KNOWN, X, Y
from inference_cases import on_plane
from optpair.gp.inference import Inference, Known
from optpair.gp.likelihood import Sample
from optpair.runtime.streams import Stream

WAY, PROCESS, SAMPLE = Known(HYPERS), on_plane("mixed"), Sample(X, Y, KNOWN)


def test_they_are_those_given() -> None:
    assert isinstance(WAY, Inference)
    assert (WAY.sets, WAY.standardises) == (3, False)
    found = WAY.update(Stream.of(0), None, SAMPLE, PROCESS, 8)
    assert found.mixing is None
    assert WAY.hyperparameters(found.state, PROCESS) is HYPERS
    assert WAY.rescaled(found.state, 2.0, 0.5, PROCESS) == found.state
    assert WAY.wider(Stream.of(0), found.state, SAMPLE, PROCESS) is None


def test_nothing_is_kept() -> None:
    state = WAY.update(Stream.of(0), None, SAMPLE, PROCESS, 8).state
    assert WAY.to_json(state) == {}
    assert WAY.from_json({}, PROCESS) == state
    with pytest.raises(ValueError, match=r"known hyperparameters have no state, not \{'theta'"):
        WAY.from_json({"theta": [1.0]}, PROCESS)


def test_the_sets_are_not_changed() -> None:
    before = {name: value.copy() for name, value in HYPERS.values().items()}
    WAY.update(Stream.of(0), None, SAMPLE, PROCESS, 8)
    for name, value in HYPERS.values().items():
        np.testing.assert_array_equal(value, before[name])
