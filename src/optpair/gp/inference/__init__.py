"""Inference: how hyperparameters are found, by chains, as the mode, or known beforehand."""

from __future__ import annotations

from optpair.gp.inference.base import Found, Inference
from optpair.gp.inference.chains import Chains, Marginal, Mixing
from optpair.gp.inference.known import Known
from optpair.gp.inference.mode import Mode

__all__ = ["Chains", "Found", "Inference", "Known", "Marginal", "Mixing", "Mode"]
