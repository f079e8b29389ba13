"""Gaussian processes over M hyperparameter sets at once.

Nothing here standardises or flips a sign: hyperparameters, points and values share whatever units
they are passed in, noise and output scale are variances.
"""

from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.inference import infer
from optpair.gp.kernels import RBF, Additive, Kernel, Matern52, Mixed
from optpair.gp.paths import Paths, sample_paths
from optpair.gp.posterior import Posterior, condition
from optpair.gp.priors import PAPER, Gamma, LogNormal, LogUniform, Prior

__all__ = [
    "PAPER",
    "RBF",
    "Additive",
    "Gamma",
    "Hyperparameters",
    "Kernel",
    "LogNormal",
    "LogUniform",
    "Matern52",
    "Mixed",
    "Paths",
    "Posterior",
    "Prior",
    "condition",
    "infer",
    "sample_paths",
]
