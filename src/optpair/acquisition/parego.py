"""ParEGO: expected improvement of a random Chebyshev scalarisation of the objectives.

    (H3)  g(z) = min_o w_o (z_o − μ_o)/√a_o,    w uniform on the simplex
    (H4)  EI_g(x) = ∫_{g⁺}^∞ Π_o Pr(w_o (z_o − μ_o)/√a_o > t) dt

After Knowles (2006), with the models of the objectives instead of one of g. g⁺ is the largest g of
the posterior means at the feasible data. The integral is by Gauss–Legendre, in logarithms: its
integrand is log-concave and falls from g⁺ on. With constraints, times the chance (C1). Every ask
has another w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from optpair.acquisition.base import Context
from optpair.acquisition.chance import Improvement, Log, OutcomeMoments, means_at, met, observed
from optpair.acquisition.special.normal import hazard, log_ndtr
from optpair.gp.posterior import Posterior
from optpair.optima.base import Wanted
from optpair.runtime.shapes import Float

LEAST = 0.01  # of a weight
FALLEN, AWAY = 35.0, 7.0  # e-foldings, and deviations, beyond which nothing is left
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_NODES, _LOG_WEIGHTS = 0.5 * (_NODES + 1), np.log(0.5 * _WEIGHTS)


@dataclass(frozen=True, repr=False)
class ParEGO(Improvement):
    """The logarithm of the mean scalarised EI; dimensionless."""

    model: tuple[Posterior, ...]
    wanted: Wanted
    weights: Float[np.ndarray, " K"]
    incumbent: Float[np.ndarray, "M F"]  # −∞ where nothing is feasible
    log: bool = True

    def improvement(self, seen: list[OutcomeMoments]) -> Log:
        """log EI_g, or 0 where there is no incumbent."""
        there = np.isfinite(self.incumbent)[..., None]
        start = np.where(there, self.incumbent[..., None], 0.0)
        scaled = []
        for w, o in zip(self.weights, self.wanted.objectives, strict=True):
            unit = w / np.sqrt(self.model[o].outputscale)[:, None, None]
            level = self.model[o].mean[:, None, None]
            scaled.append((unit * (seen[o].means - level), unit * seen[o].sd, unit))
        width = _width(scaled, start)
        t = start + width * _NODES[:, None, None, None]
        z = [(mean - t) / sd for mean, sd, _ in scaled]
        logs = np.sum([log_ndtr(own) for own in z], axis=0) + _LOG_WEIGHTS[:, None, None, None]
        value = logsumexp(logs, axis=0)
        share = np.exp(logs - value)
        by = {}
        for o, own, (_, sd, unit) in zip(self.wanted.objectives, z, scaled, strict=True):
            slope = share * hazard(own)
            by_mean = np.where(there, slope.sum(0) * unit / sd, 0.0)
            by[o] = (by_mean, np.where(there, -(slope * own).sum(0) * unit / sd, 0.0))
        return Log(np.where(there, value + np.log(width), 0.0), by)


def _width(
    scaled: list[tuple[np.ndarray, np.ndarray, np.ndarray]], start: np.ndarray
) -> Float[np.ndarray, "M F q"]:
    """How far the integrand of (H4) reaches: by its slope at the start, and by the nearest tail."""
    rate = np.sum([hazard((mean - start) / sd) / sd for mean, sd, _ in scaled], axis=0)
    reach = np.min([np.maximum(mean - start, 0.0) + AWAY * sd for mean, sd, _ in scaled], axis=0)
    return np.asarray(np.minimum(FALLEN / np.maximum(rate, 1e-300), reach))


def parego(
    model: tuple[Posterior, ...], wanted: Wanted, weights: Float[np.ndarray, " K"]
) -> ParEGO:
    """Scalarised log EI with these weights."""
    means = means_at(model, observed(model, wanted))
    each = []
    for w, o in zip(weights, wanted.objectives, strict=True):
        size = np.sqrt(model[o].outputscale)[:, None, None]
        each.append(w * (means[o] - model[o].mean[:, None, None]) / size)
    g = np.where(met(means, wanted), np.min(each, axis=0), -np.inf)
    return ParEGO(model, wanted, weights, g.max(-1, initial=-np.inf))


def random_weights(context: Context) -> Float[np.ndarray, " K"]:
    """Uniform on the simplex, none next to nothing; the largest is 1."""
    drawn = context.stream.draw().dirichlet(np.ones(len(context.wanted.objectives)))
    raised = np.maximum(drawn, LEAST)
    return np.asarray(raised / raised.max())


def build(context: Context) -> ParEGO:
    """ParEGO from what the engine has at hand."""
    return parego(context.model, context.wanted, random_weights(context))
