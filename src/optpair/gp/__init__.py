"""Gaussian processes over M hyperparameter sets at once.

Nothing here standardises or flips a sign: hyperparameters, points and values share whatever units
they are passed in, noise and output scale are variances.
"""

from optpair.gp.posterior import Hyperparameters, Posterior, condition

__all__ = ["Hyperparameters", "Posterior", "condition"]
