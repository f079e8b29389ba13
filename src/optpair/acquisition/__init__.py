"""Acquisition functions, one idea per file, and their registry.

`jes(posterior, optima)`, `logei(posterior)` and the others return functions of points
(q, d) -> (q,). The registry names those that `Optimizer(acquisition=…)` takes; it also takes the
controls, which need no model, and functions of your own.
"""

from optpair.acquisition.aegis import aegis
from optpair.acquisition.base import Acquisition, Context, OfMoments, Partials, Values
from optpair.acquisition.cei import constrained_ei
from optpair.acquisition.cmes import cmes_ibo
from optpair.acquisition.cost import Cost, fit_cost
from optpair.acquisition.ehvi import ehvi
from optpair.acquisition.ei import ei, logei, nei
from optpair.acquisition.es import es
from optpair.acquisition.fitbo import fitbo
from optpair.acquisition.ids import ids
from optpair.acquisition.jes import jes, jes_peak
from optpair.acquisition.kg import kg
from optpair.acquisition.looks import mf_jes, mf_mes
from optpair.acquisition.mean import mean
from optpair.acquisition.mes import gibbon, gumbel_maxima, mes, mes_noisy, rmes
from optpair.acquisition.mfkg import mf_kg
from optpair.acquisition.opes import opes
from optpair.acquisition.parego import parego
from optpair.acquisition.pes import pes
from optpair.acquisition.pi import pi
from optpair.acquisition.registry import (
    CONTROLS,
    REGISTRY,
    Entry,
    check_goal,
    entry_of,
    names,
    register,
)
from optpair.acquisition.ts import ts
from optpair.acquisition.ucb import ucb
from optpair.acquisition.weights import Success, Weight, Weighted, fit_success, weighted

__all__ = [
    "CONTROLS",
    "REGISTRY",
    "Acquisition",
    "Context",
    "Cost",
    "Entry",
    "OfMoments",
    "Partials",
    "Success",
    "Values",
    "Weight",
    "Weighted",
    "aegis",
    "check_goal",
    "cmes_ibo",
    "constrained_ei",
    "ehvi",
    "ei",
    "entry_of",
    "es",
    "fit_cost",
    "fit_success",
    "fitbo",
    "gibbon",
    "gumbel_maxima",
    "ids",
    "jes",
    "jes_peak",
    "kg",
    "logei",
    "mean",
    "mes",
    "mes_noisy",
    "mf_jes",
    "mf_kg",
    "mf_mes",
    "names",
    "nei",
    "opes",
    "parego",
    "pes",
    "pi",
    "register",
    "rmes",
    "ts",
    "ucb",
    "weighted",
]
