"""Gaussian processes before data: a kernel, priors over its hyperparameters, and columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from optpair.gp.hyperparameters import Below, Block, Exp, Logit, Table, Times
from optpair.gp.kernels import Columns, Kernel, Matern52
from optpair.gp.noise import Growth
from optpair.gp.priors import Normal, Prior

SHARED, SPREAD = "luck", 2.0  # the share of noise that looks at one run have in common, its prior


@dataclass(frozen=True)
class Process:
    """What a GP is before it has seen data."""

    columns: Columns
    """The parameter that each column of the cube belongs to, and whose length scale it has."""
    kernel: Kernel = field(default_factory=Matern52)
    prior: Prior = field(default_factory=Prior)
    categories_apart: bool = False
    """Whether two categories are at least a length scale apart, however alike they look."""
    runs: bool = False
    """Whether observations of one run share its luck, and how much is inferred."""
    growth: Growth | None = None
    """How the noise may grow as looks get cheaper, where there are fidelities."""

    @property
    def d(self) -> int:
        """The number of parameters, each with a length scale."""
        return max(self.columns) + 1

    @cached_property
    def table(self) -> Table:
        """All hyperparameters, in the order in which θ holds them."""
        prior = self.prior
        return Table(
            (
                Block("lengthscale", self.d, self._scales, prior.lengthscale),
                Block("outputscale", 1, Exp(), prior.outputscale, power=2),
                Block("noise", 1, Exp(prior.noise_floor), prior.noise, power=2),
                Block("mean", 1, Times(prior.mean_scale), Normal(), power=1),
                *self.kernel.blocks(),
                *([Block(SHARED, 1, Logit(SPREAD), Normal())] if self.runs else []),
                *([] if self.growth is None else [self.growth.block]),
            ),
            self.d,
            self.kernel.tie(prior.lengthscale, self.d),
        )

    @property
    def categories(self) -> bool:
        """Whether any parameter has several columns, as categories have."""
        return len(self.columns) > self.d

    @property
    def _scales(self) -> Exp | Below:
        """What a length scale may be: two categories are at distance 1."""
        if not self.categories_apart:
            return Exp()
        columns = Counter(self.columns)
        return Below(tuple(1.0 if columns[k] > 1 else np.inf for k in range(self.d)))
