"""Saved optimisers: JSON, checked when read."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optpair.engine.session import Session
from optpair.engine.settings import Settings
from optpair.gp import priors
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.kernels import KERNELS, Kernel

FORMAT, VERSION = "optpair", 3
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


def session_to_json(session: Session) -> dict[str, Any]:
    """What a session was made with, beside its problem."""
    if not isinstance(session.acquisition, str):
        raise TypeError(
            "an optimizer with an acquisition function of your own cannot be saved: register it "
            "under a name, optpair.acquisition.register(name, entry)"
        )
    return {
        "seed": session.seed,
        "acquisition": session.acquisition,
        "hyperparameters": _hyperparameters_to_json(session.hyperparameters),
        "settings": settings_to_json(session.settings),
    }


def session_from_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an optimiser; names are checked where they are used."""
    return {
        "seed": document["seed"],
        "acquisition": document["acquisition"],
        "hyperparameters": _hyperparameters_from_json(document["hyperparameters"]),
        "settings": settings_from_json(document["settings"]),
    }


def _hyperparameters_to_json(given: str | Hyperparameters) -> Any:
    """The name of a way to infer them, or the known values."""
    if isinstance(given, str):
        return given
    return {name: value.tolist() for name, value in given.values().items()}


def _hyperparameters_from_json(document: Any) -> str | Hyperparameters:
    return document if isinstance(document, str) else Hyperparameters(**document)


def settings_to_json(settings: Settings) -> dict[str, Any]:
    """Settings, with the prior's densities by name."""
    document = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
    document["kernel"] = _kernel_name(settings.kernel)
    prior = {f.name: getattr(settings.prior, f.name) for f in dataclasses.fields(settings.prior)}
    document["prior"] = {name: _density_to_json(value) for name, value in prior.items()}
    return document


def _kernel_name(kernel: str | Kernel) -> str:
    """The name under which a kernel is found again."""
    for name, known in KERNELS.items():
        if known == kernel:
            return name
    raise TypeError(f"an optimizer with the kernel {kernel!r} cannot be saved: it has no name")


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
    if isinstance(value, Mapping) and name in priors.DENSITIES:
        numbers = {k: v for k, v in value.items() if k != "density"}
        _check_numbers(name, numbers.values())
        return DENSITIES[value["density"]](**numbers)
    _check_numbers(name, [value])
    return value


def _check_numbers(name: str, values: Any) -> None:
    for value in values:
        if not isinstance(value, int | float) or abs(value) > 1e100:
            raise ValueError(f"the prior of {name} holds {value!r}, where a number belongs")
