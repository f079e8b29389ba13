"""The registry of acquisition functions: what `Optimizer(acquisition=…)` takes by name.

Other packages may add to it:

    register("my-gain", Entry(build, "what it does in a line", needs=frozenset({"optima"})))
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import get_args

import numpy as np

from optpair.acquisition import controls, own
from optpair.acquisition.aegis import build as build_aegis
from optpair.acquisition.base import Acquisition, Context, Values
from optpair.acquisition.cei import build as build_cei
from optpair.acquisition.cei import build_noisy as build_cnei
from optpair.acquisition.cmes import build as build_cmes
from optpair.acquisition.ehvi import build as build_ehvi
from optpair.acquisition.ehvi import build_noisy as build_nehvi
from optpair.acquisition.ei import build as build_ei
from optpair.acquisition.ei import build_noisy as build_nei
from optpair.acquisition.es import build as build_es
from optpair.acquisition.fitbo import build as build_fitbo
from optpair.acquisition.ids import build as build_ids
from optpair.acquisition.kg import build as build_kg
from optpair.acquisition.looks import build_jes
from optpair.acquisition.looks import build_mes as build_mf_mes
from optpair.acquisition.looks import build_peak as build_jes_peak
from optpair.acquisition.mean import build as build_mean
from optpair.acquisition.mes import build as build_mes
from optpair.acquisition.mes import build_gumbel as build_mes_gumbel
from optpair.acquisition.mfkg import build as build_mf_kg
from optpair.acquisition.opes import build as build_opes
from optpair.acquisition.parego import build as build_parego
from optpair.acquisition.pes import build as build_pes
from optpair.acquisition.pi import build as build_pi
from optpair.acquisition.ts import build as build_ts
from optpair.acquisition.ucb import build as build_ucb
from optpair.cube.region import Region
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream

NEEDS = frozenset({"paths", "optima"})
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
OPTIMA = frozenset({"optima"})
GOALS = ("best", "feasible", "front")
BEST, FEASIBLE, FRONT = (frozenset({goal}) for goal in GOALS)


Build = Callable[[Context], Acquisition]


@dataclass(frozen=True)
class Entry:
    """How to build an acquisition function, and what has to be known about it."""

    build: Build
    summary: str
    needs: frozenset[str] = frozenset()
    """What of a context it uses beside the model: `paths`, `optima` (which are of paths)."""
    scale: Values = "gain"
    """What its values are."""
    goals: frozenset[str] = frozenset({"best"})
    """The goals it serves: `best` (one objective), `feasible` (with constraints), `front`."""
    looks: bool = False
    """Whether it can tell what a look at another fidelity than the target's says."""
    borrows: bool = True
    """Whether it can be used after earlier studies: not where it redraws what was observed."""

    def __post_init__(self) -> None:
        if not self.needs <= NEEDS:
            wrong = ", ".join(sorted(self.needs - NEEDS))
            raise ValueError(f"needs must be among {', '.join(sorted(NEEDS))}, not {wrong}")
        if self.scale not in get_args(Values):
            raise ValueError(f"scale must be one of {get_args(Values)}, not {self.scale!r}")
        if not self.goals or not self.goals <= set(GOALS):
            given = ", ".join(sorted(self.goals)) or "nothing"
            raise ValueError(f"goals must be among {', '.join(GOALS)}, not {given}")


def by_goal(best: Build, other: Build) -> Build:
    """One builder for a single outcome, and another for several."""
    return lambda context: (best if context.wanted.goal == "best" else other)(context)


_BUILT_IN = {
    "jes": Entry(
        build_jes,
        "Joint Entropy Search, truncation by moment matching",
        OPTIMA,
        goals=BEST | FEASIBLE | FRONT,
        looks=True,
    ),
    "jes-exact": Entry(
        partial(build_jes, exact=True),
        "Joint Entropy Search, truncation by quadrature",
        OPTIMA,
        looks=True,
    ),
    "jes-peak": Entry(
        build_jes_peak,
        "Joint Entropy Search that also knows that the slope at x* is zero",
        OPTIMA,
        goals=BEST | FEASIBLE | FRONT,
        looks=True,
    ),
    "mes": Entry(
        build_mes_gumbel, "Max-value Entropy Search without noise, f* by the Gumbel approximation"
    ),
    "mes-paths": Entry(
        partial(build_mes, form="noiseless"),
        "Max-value Entropy Search without noise, f* from sample paths",
        OPTIMA,
    ),
    "gibbon": Entry(
        partial(build_mes, form="matched"),
        "Max-value Entropy Search with noise by moment matching, f* from sample paths",
        OPTIMA,
    ),
    "rmes": Entry(
        partial(build_mes, form="exact"),
        "Max-value Entropy Search with noise by quadrature, f* from sample paths",
        OPTIMA,
    ),
    "mes-noisy": Entry(
        partial(build_mes, form="divergence"),
        "Max-value Entropy Search with noise as a divergence, f* from sample paths",
        OPTIMA,
    ),
    "mf-mes": Entry(
        build_mf_mes,
        "Max-value Entropy Search at any fidelity, with noise by moment matching",
        OPTIMA,
        looks=True,
    ),
    "opes": Entry(
        build_opes,
        "Output-space Predictive Entropy Search: f* bounds the data as well",
        OPTIMA,
        borrows=False,
    ),
    "pes": Entry(
        build_pes,
        "Predictive Entropy Search: the maximiser alone, by expectation propagation",
        OPTIMA,
    ),
    "fitbo": Entry(
        build_fitbo,
        "FITBO: the mixture over f* of a model that f* bounds, by moments",
        OPTIMA,
        borrows=False,
    ),
    "ids": Entry(
        build_ids, "information-directed sampling: the gain of jes per squared regret", OPTIMA
    ),
    "es": Entry(build_es, "Entropy Search on representer points, by Monte Carlo"),
    "ei": Entry(
        by_goal(partial(build_ei, log=False), partial(build_cei, log=False)),
        "Expected Improvement over the best posterior mean",
        scale="improvement",
        goals=BEST | FEASIBLE,
    ),
    "logei": Entry(
        by_goal(partial(build_ei, log=True), partial(build_cei, log=True)),
        "Expected Improvement over the best posterior mean, as a logarithm",
        scale="log improvement",
        goals=BEST | FEASIBLE,
    ),
    "nei": Entry(
        by_goal(partial(build_nei, log=False), partial(build_cnei, log=False)),
        "Expected Improvement over values at the data that are drawn, not known",
        scale="improvement",
        goals=BEST | FEASIBLE,
        borrows=False,
    ),
    "lognei": Entry(
        by_goal(partial(build_nei, log=True), partial(build_cnei, log=True)),
        "Expected Improvement over values at the data that are drawn, as a logarithm",
        scale="log improvement",
        goals=BEST | FEASIBLE,
        borrows=False,
    ),
    "pi": Entry(build_pi, "Probability of Improvement over the best posterior mean"),
    "ucb": Entry(build_ucb, "upper confidence bound, GP-UCB's schedule", scale="worth"),
    "kg": Entry(
        build_kg,
        "knowledge gradient over sampled optima and the best points",
        OPTIMA,
        scale="improvement",
    ),
    "mf-kg": Entry(
        build_mf_kg,
        "knowledge gradient at the target of a look at any fidelity",
        OPTIMA,
        scale="improvement",
        looks=True,
    ),
    "ts": Entry(
        build_ts,
        "Thompson sampling: one sample path",
        frozenset({"paths"}),
        scale="worth",
        goals=BEST | FEASIBLE | FRONT,
    ),
    "aegis": Entry(
        build_aegis,
        "the mean, a sample path, or a point of the Pareto set of mean and spread, by a coin",
        frozenset({"paths"}),
        scale="worth",
    ),
    "cmes-ibo": Entry(
        build_cmes,
        "what the best feasible value, or a Pareto set, rules out: a bound without noise",
        OPTIMA,
        goals=FEASIBLE | FRONT,
    ),
    "ehvi": Entry(
        partial(build_ehvi, log=False),
        "expected hypervolume improvement over the front of posterior means",
        scale="improvement",
        goals=FRONT,
    ),
    "logehvi": Entry(
        partial(build_ehvi, log=True),
        "expected hypervolume improvement over the front of posterior means, as a logarithm",
        scale="log improvement",
        goals=FRONT,
    ),
    "lognehvi": Entry(
        partial(build_nehvi, log=True),
        "expected hypervolume improvement over fronts at the data that are drawn, as a logarithm",
        scale="log improvement",
        goals=FRONT,
        borrows=False,
    ),
    "parego": Entry(
        build_parego,
        "Expected Improvement of a random Chebyshev scalarisation, as a logarithm",
        scale="log improvement",
        goals=FRONT,
    ),
    "mean": Entry(build_mean, "the posterior mean: no exploration", scale="worth"),
}

Control = Callable[[Stream, Region, int], Float[np.ndarray, " D"]]
"""The i-th point of a search without a model, from a stream of random numbers and a region."""

CONTROLS: Mapping[str, Control] = MappingProxyType(
    {"random": controls.random, "lattice": controls.lattice}
)
"""What needs no model: the i-th point of a search, from a stream of random numbers and a region."""

_entries = dict(_BUILT_IN)
REGISTRY: Mapping[str, Entry] = MappingProxyType(_entries)
"""All acquisition functions that have a name; `register` adds to it."""


def names() -> tuple[str, ...]:
    """The names that `Optimizer(acquisition=…)` takes."""
    return (*REGISTRY, *CONTROLS)


def register(name: str, entry: Entry) -> None:
    """Give an acquisition function a name, or one of your own names another function.

    Args:
        name: lower-case letters and digits, words joined by hyphens.
        entry: how to build it.

    Raises:
        ValueError: if the name is a built-in one, or not of that form.
    """
    if not NAME.fullmatch(name):
        raise ValueError(
            f"name must be lower-case letters and digits, with hyphens between words, not {name!r}"
        )
    if name in _BUILT_IN or name in CONTROLS:
        raise ValueError(f"{name!r} is built in and stays what it is: choose another name")
    if not isinstance(entry, Entry):
        raise TypeError(f"entry must be an Entry, not {entry!r}")
    _entries[name] = entry


def check_goal(entry: Entry, goal: str) -> None:
    """Raise if an acquisition function does not serve a goal, with the names of those that do."""
    if goal in entry.goals:
        return
    serving = ", ".join(other for other, own in REGISTRY.items() if goal in own.goals)
    asked = {
        "best": "one objective",
        "feasible": "an objective under constraints",
        "front": "several objectives",
    }[goal]
    raise ValueError(f"acquisition {_name_of(entry)!r} is not for {asked}; use one of {serving}")


def check_borrows(entry: Entry, goal: str) -> None:
    """Raise if an acquisition function cannot be used after earlier studies."""
    if not entry.borrows:
        serving = ", ".join(n for n, own in REGISTRY.items() if own.borrows and goal in own.goals)
        raise ValueError(
            f"acquisition {_name_of(entry)!r} redraws what was observed, and cannot do so for "
            f"earlier studies; leave earlier out, or use one of {serving}"
        )


def _name_of(entry: Entry) -> str:
    """The name of an entry, or what it is where it has none."""
    return next((name for name, own in REGISTRY.items() if own is entry), entry.summary)


def entry_of(given: object) -> Entry:
    """The entry of a name, of a function of your own (see `optpair.acquisition.own`), or itself.

    What the values of a function of your own are is not known: they are taken for worths. Give an
    `Entry` to say otherwise, or what it needs.
    """
    if isinstance(given, Entry):
        return given
    if isinstance(given, str):
        return _named(given)
    if isinstance(given, Acquisition) or not callable(given):
        raise TypeError(
            "acquisition must be a name, a function of (mean, variance) or of a context, "
            f"or an Entry, not {given!r}"
        )
    needs = NEEDS if own.arguments(given) == 1 else frozenset()
    return Entry(own.builder(given), f"your own: {own.name_of(given)}", needs, scale="worth")


def _named(name: str) -> Entry:
    if name in REGISTRY:
        return REGISTRY[name]
    if name in CONTROLS:
        raise ValueError(f"{name!r} is a control: it needs no model, and has no entry")
    close = difflib.get_close_matches(name.lower(), names(), n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"acquisition must be one of {', '.join(names())}, or a function, not {name!r}{hint}"
    )
