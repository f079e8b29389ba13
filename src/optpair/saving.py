"""Saved optimisers: JSON, written in one atomic step, checked when read."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from optpair.engine import Engine, State
from optpair.gp import priors
from optpair.gp.inference import WINDOW, Chains
from optpair.gp.posterior import Hyperparameters
from optpair.history import History, Scaling
from optpair.runtime import double
from optpair.settings import Settings

FORMAT, VERSION = "optpair", 1


def write(path: str | Path, document: Mapping[str, Any]) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new, whole."""
    target = Path(path)
    text = json.dumps({"format": FORMAT, "version": VERSION, **document}, allow_nan=False)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(path: str | Path) -> dict[str, Any]:
    """The document in a saved file, or a ValueError that names the file and what is wrong."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged or no saved optimizer: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path} is JSON, but no saved optimizer")
    if document.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {document.get('version')!r} of the format; "
            f"this release reads version {VERSION}"
        )
    return document


@contextmanager
def blame(path: str | Path) -> Iterator[None]:
    """Turn what goes wrong while a document is read into an error that names the file."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{path} is damaged: {error} is missing") from error
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def as_count(value: object) -> int:
    """A non-negative int."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a count, not {value!r}")
    return value


def hyperparameters_to_json(given: str | Hyperparameters) -> Any:
    """A mode's name, or the known values."""
    if isinstance(given, str):
        return given
    return {f.name: np.asarray(getattr(given, f.name)).tolist() for f in dataclasses.fields(given)}


def hyperparameters_from_json(document: Any) -> Literal["marginal", "map"] | Hyperparameters:
    """The inverse; a name is checked where it is used."""
    return document if isinstance(document, str) else Hyperparameters(**document)  # type: ignore[return-value]


def settings_to_json(settings: Settings) -> dict[str, Any]:
    """Settings, with the prior's densities by name."""
    document = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
    prior = {f.name: getattr(settings.prior, f.name) for f in dataclasses.fields(settings.prior)}
    document["prior"] = {
        name: {"density": type(value).__name__, **dataclasses.asdict(value)}
        if dataclasses.is_dataclass(value) and not isinstance(value, type)
        else value
        for name, value in prior.items()
    }
    return document


def settings_from_json(document: Mapping[str, Any]) -> Settings:
    """The inverse."""
    densities = {c.__name__: c for c in (priors.LogNormal, priors.Gamma, priors.LogUniform)}

    def density(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        rest = {k: v for k, v in value.items() if k != "density"}
        return densities[value["density"]](**rest)

    prior = priors.Prior(**{name: density(value) for name, value in document["prior"].items()})
    return Settings(**{**document, "prior": prior})


def state_to_json(state: State) -> dict[str, Any]:
    """What exact continuation needs: chains, step size, scaling of y, counters."""
    chains = state.chains
    return {
        "told": state.told,
        "scaling": None if state.scaling is None else dataclasses.asdict(state.scaling),
        "theta": None if state.theta is None else np.asarray(state.theta).tolist(),
        "chains": None
        if chains is None
        else {
            f.name: np.asarray(getattr(chains, f.name)).tolist() for f in dataclasses.fields(chains)
        },
    }


@double
def state_from_json(document: Mapping[str, Any], history: History, engine: Engine) -> State:
    """The inverse; shapes must fit the space and the settings."""
    scaling = document["scaling"]
    state = State(
        told=as_count(document["told"]),
        scaling=None
        if scaling is None
        else Scaling(float(scaling["loc"]), float(scaling["scale"])),
        theta=None if document["theta"] is None else _array(document["theta"]),
        chains=None
        if document["chains"] is None
        else Chains(**{k: jnp.asarray(_array(v)) for k, v in document["chains"].items()}),
    )
    k = len(history.space) + 3
    sets = 1 if engine.hyperparameters == "map" else engine.settings.sets
    shapes = {"position": (sets, k), "step_size": (), "inverse_mass": (k,)}
    shapes["recent"] = (sets, WINDOW, k)
    if state.theta is not None and state.theta.shape != (sets, k):
        raise ValueError(f"theta has shape {state.theta.shape}, not {(sets, k)}")
    for name, shape in shapes.items() if state.chains is not None else ():
        if getattr(state.chains, name).shape != shape:
            raise ValueError(f"{name} has shape {getattr(state.chains, name).shape}, not {shape}")
    if state.told > history.count("told"):
        raise ValueError("the state has seen more values than the history holds")
    return state


def _array(values: Any) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError("the state holds a value that is not finite")
    return array
