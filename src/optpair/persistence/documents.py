"""Saved optimisers: JSON, checked when read."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from optpair.engine import Engine, State
from optpair.gp import priors
from optpair.gp.inference import OLDEST, WINDOW, Chains
from optpair.gp.posterior import Hyperparameters
from optpair.history import History
from optpair.scaling import Scaling
from optpair.settings import Settings

FORMAT, VERSION = "optpair", 1
DENSITIES = {c.__name__: c for c in (priors.LogNormal, priors.Gamma, priors.LogUniform)}
MOST_COUNT = 2**31  # counts are folded into keys


def dumps(document: Mapping[str, Any]) -> str:
    """A document as text."""
    return json.dumps({"format": FORMAT, "version": VERSION, **document}, allow_nan=False)


def loads(content: bytes, path: str | Path) -> dict[str, Any]:
    """The document in a saved file, or a ValueError that names the file and what is wrong."""
    try:
        document = json.loads(content.decode(), parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged, or no saved optimizer: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path} is JSON, but no saved optimizer")
    if document.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {document.get('version')!r} of the format; this release reads "
            f"version {VERSION}: load it with the release that saved it"
        )
    return document


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"it holds the number {text}, which is not finite")
    return number


@contextmanager
def blame(path: str | Path) -> Iterator[None]:
    """Turn what goes wrong while a document is read into an error that names the file."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{path} is damaged: {error} is missing") from error
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def as_count(value: object) -> int:
    """A non-negative int."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST_COUNT:
        raise ValueError(f"expected a count, not {value!r}")
    return value


def hyperparameters_to_json(given: str | Hyperparameters) -> Any:
    """A mode's name, or the known values."""
    if isinstance(given, str):
        return given
    return {f.name: np.asarray(getattr(given, f.name)).tolist() for f in dataclasses.fields(given)}


def hyperparameters_from_json(document: Any) -> Literal["marginal", "map"] | Hyperparameters:
    """The inverse; a name is checked where it is used."""
    if isinstance(document, str):
        return document  # type: ignore[return-value]
    return Hyperparameters(**{k: np.asarray(v, dtype=np.float64) for k, v in document.items()})


def settings_to_json(settings: Settings) -> dict[str, Any]:
    """Settings, with the prior's densities by name."""
    document = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
    prior = {f.name: getattr(settings.prior, f.name) for f in dataclasses.fields(settings.prior)}
    document["prior"] = {name: _density_to_json(value) for name, value in prior.items()}
    return document


def _density_to_json(value: Any) -> Any:
    name = type(value).__name__
    if DENSITIES.get(name) is type(value):
        return {"density": name, **dataclasses.asdict(value)}
    if not isinstance(value, int | float):
        raise TypeError(f"a prior with {value!r} cannot be saved, only {', '.join(DENSITIES)}")
    return value


def settings_from_json(document: Mapping[str, Any]) -> Settings:
    """The inverse."""
    prior = {name: _density_from_json(name, value) for name, value in document["prior"].items()}
    return Settings(**{**document, "prior": priors.Prior(**prior)})


def _density_from_json(name: str, value: Any) -> Any:
    if isinstance(value, Mapping) and name in ("lengthscale", "outputscale", "noise"):
        numbers = {k: v for k, v in value.items() if k != "density"}
        _check_numbers(name, numbers.values())
        return DENSITIES[value["density"]](**numbers)
    _check_numbers(name, [value])
    return value


def _check_numbers(name: str, values: Any) -> None:
    for value in values:
        if not isinstance(value, int | float) or abs(value) > 1e100:
            raise ValueError(f"the prior of {name} holds {value!r}, where a number belongs")


def state_to_json(state: State) -> dict[str, Any]:
    """What exact continuation needs: chains, step size, scaling of y, counters."""
    chains = None
    if state.chains is not None:
        chains = {k: np.asarray(getattr(state.chains, k)) for k in _names(Chains)}
    held = [v for k, v in (chains or {}).items() if k != "log_density"]
    held += [] if state.theta is None else [state.theta]
    if not all(np.all(np.isfinite(v)) for v in held):
        return state_to_json(State())  # of no use: what was told matters more
    return {
        "told": state.told,
        "scaling": None if state.scaling is None else dataclasses.asdict(state.scaling),
        "theta": None if state.theta is None else np.asarray(state.theta).tolist(),
        "chains": None if chains is None else {k: _listed(v) for k, v in chains.items()},
    }


def _listed(array: np.ndarray) -> Any:
    """As a list; null stands for the log density −inf of a chain that the data rule out."""
    values = array.astype(object)
    values[~np.isfinite(array)] = None
    return values.tolist()


def _names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


def state_from_json(document: Mapping[str, Any], history: History, engine: Engine) -> State:
    """The inverse; shapes and signs must fit the space, the settings and the history."""
    k, marginal = engine.model.k, engine.hyperparameters == "marginal"
    sets = engine.settings.sets if marginal else 1
    scaling, theta, chains = document["scaling"], document["theta"], document["chains"]
    fitted = scaling is not None and isinstance(engine.hyperparameters, str)
    if (theta is not None, chains is not None) != (fitted, fitted and marginal):
        raise ValueError("the state's scaling, theta and chains do not belong together")
    state = State(
        told=as_count(document["told"]),
        scaling=None if scaling is None else _scaling(scaling),
        theta=None if theta is None else _array("theta", theta, (sets, k)),
        chains=None if chains is None else _chains(chains, sets, k),
    )
    if state.told > history.count("told") or (state.told > 0) != (scaling is not None):
        raise ValueError(f"the state has seen {state.told} values, not those of the history")
    return state


def _scaling(document: Mapping[str, Any]) -> Scaling:
    numbers: dict[str, Any] = {}
    for name in _names(Scaling):
        check = _positive if name in ("scale", "unit") else _array
        absent = name == "knee" and document[name] is None
        numbers[name] = None if absent else float(check(name, document[name], ()))
    return Scaling(**numbers)


def _chains(document: Mapping[str, Any], sets: int, k: int) -> Chains:
    density = _array("log_density", document["log_density"], (sets,), missing=-np.inf)
    age = _array("age", document["age"], (sets,))
    if np.any(age < 0) or np.any(age > OLDEST):
        raise ValueError(f"age must be from 0 to {OLDEST}, not {age.tolist()}")
    return Chains(
        position=_array("position", document["position"], (sets, k)),
        log_density=density,
        log_weight=_array("log_weight", document["log_weight"], (sets,)),
        age=age.astype(int),
        step_size=float(_positive("step_size", document["step_size"], ())),
        inverse_mass=_positive("inverse_mass", document["inverse_mass"], (k,)),
        recent=_array("recent", document["recent"], (sets, WINDOW, k)),
    )


def _array(
    name: str, values: Any, shape: tuple[int, ...], missing: float | None = None
) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, not {shape}")
    if missing is not None:
        array = np.where(np.isnan(array), missing, array)
    elif not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds a value that is not finite")
    return array


def _positive(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = _array(name, values, shape)
    if np.any(array <= 0):
        raise ValueError(f"{name} must be positive, not {array.tolist()}")
    return array
