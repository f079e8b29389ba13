"""Shapes in signatures: checked in tests, and free of cost for everybody else."""

from __future__ import annotations

import os

import numpy as np
import pytest

from optpair.optima import Optima
from shell_cases import python


@pytest.mark.skipif(os.environ.get("OPTPAIR_SHAPES") == "unchecked", reason="not checked here")
def test_a_wrong_shape_is_an_error_in_tests() -> None:
    with pytest.raises(Exception, match="Type-check error"):
        Optima.pairs(np.zeros((2, 3, 1)), np.zeros((2, 4)))


def test_users_import_no_checker() -> None:
    code = "import sys, optpair; optpair.minimize; print('jaxtyping' in sys.modules)"
    assert python(code).stdout.strip() == "False"
