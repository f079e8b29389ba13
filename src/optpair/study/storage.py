"""Where trials are kept: Optuna's storages, by URL."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import optuna
from optuna import Study
from optuna.distributions import distribution_to_json
from optuna.exceptions import StorageInternalError
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, GrpcStorageProxy, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalRedisBackend

from optpair.study.config import StudyError, StudyFile

SPACE = "optpair:space"
BUSY = 60  # seconds that a worker waits for another's write to an SQLite file
TRIES = 7
T = TypeVar("T")


def open_storage(url: str) -> BaseStorage:
    """The storage at a URL."""
    scheme = urlsplit(url).scheme
    if scheme == "journal":
        return JournalStorage(JournalFileBackend(url.removeprefix("journal:///")))
    if scheme in ("redis", "rediss"):
        return JournalStorage(JournalRedisBackend(url))
    if scheme == "grpc":
        parts = urlsplit(url)
        return GrpcStorageProxy(host=parts.hostname or "localhost", port=parts.port or 13000)
    engine: dict[str, Any] = {"pool_pre_ping": True}
    if scheme == "sqlite":
        engine = {"connect_args": {"timeout": BUSY}}
    return RDBStorage(url, engine_kwargs=engine)


def open_study(file: StudyFile, sampler: BaseSampler | None = None) -> Study:
    """The study, made where it is new; an error where the stored one is another."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        storage = insist(lambda: open_storage(file.storage))
        study = insist(
            lambda: optuna.create_study(
                study_name=file.name,
                storage=storage,
                direction=file.direction,
                sampler=sampler,
                load_if_exists=True,
            )
        )
    except ImportError as error:
        raise StudyError(f"{file.storage} needs a driver that is not here: {error}") from error
    except Exception as error:
        raise StudyError(f"{file.storage} cannot be opened: {_first_line(error)}") from error
    _check_same(file, study)
    return study


def _check_same(file: StudyFile, study: Study) -> None:
    if study.direction.name.lower() != file.direction:
        raise _differs(file, f"direction {study.direction.name.lower()}")
    space = {name: json.loads(distribution_to_json(d)) for name, d in file.space.items()}
    stored = insist(lambda: study.user_attrs).get(SPACE)
    if stored is None:
        insist(lambda: study.set_user_attr(SPACE, space))
    elif stored != space:
        raise _differs(file, f"[space] {json.dumps(stored)}")


def _differs(file: StudyFile, what: str) -> StudyError:
    return StudyError(
        f"{file.path.name}: study {file.name!r} is in {file.storage} with another {what}; "
        "restore that, or give this study another name"
    )


def insist(action: Callable[[], T]) -> T:
    """Try again, for about a minute, while a storage is busy or away."""
    for attempt in range(TRIES):
        try:
            return action()
        except StorageInternalError:
            if attempt == TRIES - 1:
                raise
            time.sleep(0.5 * 2**attempt)
    raise AssertionError


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
