"""Where trials are kept: Optuna's storages, by URL."""

from __future__ import annotations

import json
import random
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import optuna
from optuna import Study
from optuna.distributions import distribution_to_json
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, GrpcStorageProxy, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalRedisBackend

from optpair.integrations.optuna.attributes import OUTCOMES
from optpair.integrations.optuna.outcomes import declare
from optpair.problem.outcomes import meant
from optpair.problem.parameters import Context, Fidelity
from optpair.studies.config import StudyError, StudyFile
from optpair.studies.spaces import StudySpace

SPACE, NOISE = "optpair:space", "optpair:noise"
"""What a study is kept with: attributes that another file of the same name must agree with."""

MAKES = " yet; optpair run or optpair ask creates it"
BUSY = 60  # seconds that a worker waits for another's write to an SQLite file
TRIES = 7
LONGEST = 30.0  # seconds between two tries
NEEDED = {
    "postgresql": "psycopg2, or write postgresql+psycopg:// and pip install optpair[postgres]",
    "postgresql+psycopg": "optpair[postgres]",
    "mysql": "mysqlclient, or write mysql+pymysql:// and pip install optpair[mysql]",
    "mysql+pymysql": "optpair[mysql]",
    "redis": "optpair[redis]",
    "rediss": "optpair[redis]",
    "grpc": "optpair[grpc]",
}
"""What to install for a scheme whose driver is missing."""

BEING_MADE = re.compile(r"exists|unique|duplicate|locked|no such table|concurrent|compatible", re.I)

NO_TABLES = re.compile(r"no such table|relation .* does not exist|table .* doesn't exist", re.I)

GONE = re.compile(r"no such table|not a database|malformed|readonly|relation .* does not exist")

URL = re.compile(
    r"(?P<scheme>[\w+.-]+)://(?:(?P<user>[^?]*)@)?"
    r"(?P<place>(?:\[[\da-fA-F:.]+\]|[^\s:/?#@\[\]]*)(?::\d+)?(?:/[^?#@]*)?)(?P<query>\?[^@]*)?"
)
"""The URL of a server. Whatever does not match may have a password in an unexpected place."""

USER = {"redis": re.compile(r"[^/#\[\]]*"), "": re.compile(r"[^:/@]*(:[^@]*)?")}
"""User and password as their readers understand them: those of Redis, and those of SQL."""

T = TypeVar("T")


def open_storage(url: str, *, make: bool = True) -> BaseStorage:
    """The storage at a URL; `make` says whether a database's tables are made where they are not."""
    scheme = urlsplit(url).scheme
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
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
    return RDBStorage(url, engine_kwargs=engine, skip_table_creation=not make)


def open_study(file: StudyFile, sampler: BaseSampler | None = None, *, make: bool = True) -> Study:
    """The study, made where it is new; an error if the stored one is another.

    Where `make` is false nothing is made, and a study that is not there is an error.
    """
    with _opening(file.storage):
        study = _make(file, sampler) if make else _find(file.storage, file.name, sampler, MAKES)
    _check_same(file, study, make)
    return study


def find_study(url: str, name: str, sampler: BaseSampler | None = None) -> Study:
    """The study of that name in a storage, made by optpair or not; nothing is created."""
    with _opening(url):
        return _find(url, name, sampler, "")


def study_names(url: str) -> list[str]:
    """The names of all studies in a storage; nothing is made."""
    with _opening(url):
        if not is_there(url):
            raise StudyError(f"there is no {without_secrets(url)}")
        storage = retry(lambda: open_storage(url, make=False), StorageInternalError)
        return list(retry(lambda: optuna.get_all_study_names(storage)))


@contextmanager
def _opening(url: str) -> Iterator[None]:
    """Turn what goes wrong while a storage is opened into an error for the user."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    check_url(url)
    try:
        yield
    except StudyError:
        raise
    except ImportError as error:
        scheme = urlsplit(url).scheme
        needed = f"pip install {NEEDED[scheme]}" if scheme in NEEDED else first_line(error)
        where = without_secrets(url)
        raise StudyError(f"{where} needs a driver that is not installed: {needed}") from error
    except Exception as error:
        where = without_secrets(url)
        raise StudyError(f"{where} cannot be opened: {first_line(error)}") from error


def _make(file: StudyFile, sampler: BaseSampler | None) -> Study:
    storage = _open(file.storage)
    return retry(
        lambda: optuna.create_study(
            study_name=file.name,
            storage=storage,
            directions=[objective.direction for objective in file.objectives.values()],
            sampler=sampler,
            load_if_exists=True,
        ),
        StorageInternalError,
    )


def _find(url: str, name: str, sampler: BaseSampler | None, hint: str) -> Study:
    """The study as it is stored; an error, and nothing made, where it is not."""
    missing = StudyError(f"there is no study {name!r} in {without_secrets(url)}{hint}")
    if not is_there(url):
        raise missing
    try:
        storage = retry(lambda: open_storage(url, make=False), StorageInternalError)
        return retry(
            lambda: optuna.load_study(study_name=name, storage=storage, sampler=sampler),
            StorageInternalError,
        )
    except KeyError as error:
        raise missing from error
    except Exception as error:
        if NO_TABLES.search(str(error)):
            raise missing from error
        raise


def is_there(url: str) -> bool:
    """Whether a storage may be there: a file that is missing is not, and is not to be made."""
    return file_of(url) is None or _path(url).exists()


def file_of(url: str) -> Path | None:
    """The file that a storage is in; None if it is a server's."""
    return _path(url) if _is_file(url) else None


def _path(url: str) -> Path:
    """Where a storage's file is. Options after a question mark are SQLite's."""
    scheme, _, name = url.partition(":///")
    return Path(name.partition("?")[0] if scheme == "sqlite" else name)


def _open(url: str) -> BaseStorage:
    """The storage; tried again if another worker, started at the same time, makes its tables."""
    for _ in range(20):
        try:
            return retry(lambda: open_storage(url), StorageInternalError)
        except Exception as error:
            if isinstance(error, ImportError) or not BEING_MADE.search(str(error)):
                raise
        time.sleep(random.uniform(0.0, 0.4))
    return open_storage(url)


def _check_same(file: StudyFile, study: Study, make: bool) -> None:
    """Refuse a study that was made with other outcomes or another space, and say what differs."""
    stored = retry(lambda: study.user_attrs)
    directions = [direction.name.lower() for direction in study.directions]
    wanted = [objective.direction for objective in file.objectives.values()]
    there, here = stored.get(OUTCOMES), declare(file.outcomes) if file.named else None
    if SPACE in stored and there != here:
        raise _differs(file, f"[outcomes]: {_other_outcomes(there, here, directions)}")
    if directions != wanted:
        raise _differs(file, f"direction {', '.join(directions)}")
    space = {name: _described(file.space, name) for name in file.space}
    if SPACE not in stored:
        if make:  # the space last: a reader that finds it finds all
            if here is not None:
                retry(lambda: study.set_user_attr(OUTCOMES, here))
                retry(lambda: _name_metrics(study, list(file.objectives)))
            retry(lambda: study.set_user_attr(NOISE, file.noise))
            retry(lambda: study.set_user_attr(SPACE, space))
        return
    if stored[SPACE] != space:
        raise _differs(file, f"[space]: {_difference(stored[SPACE], space)}")
    if stored.get(NOISE) != file.noise:
        both = (stored.get(NOISE), file.noise)
        old, new = ("inferred" if noise is None else f"{noise:g}" for noise in both)
        raise _differs(file, f"noise: {old} there and {new} here")


def _name_metrics(study: Study, names: list[str]) -> None:
    """Let other programs that read the study know what its objectives are called."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        study.set_metric_names(names)


def _described(space: StudySpace, name: str) -> dict[str, Any]:
    """What is kept of a parameter: its distribution, and when it is there."""
    found: dict[str, Any] = json.loads(distribution_to_json(space[name]))
    when, parameter = space.conditions.when.get(name), space.parameters.get(name)
    found |= {} if when is None else {"when": {p: list(v) for p, v in when.items()}}
    found |= {"role": "context"} if isinstance(parameter, Context) else {}
    return found | ({"target": parameter.target} if isinstance(parameter, Fidelity) else {})


def _other_outcomes(
    there: list[dict[str, Any]] | None, here: list[dict[str, Any]] | None, directions: list[str]
) -> str:
    """The first outcome that differs, as study files write it."""
    if there is None:
        return f"one value without a name there, direction {directions[0]}"
    if here is None:
        return f"{', '.join(own['name'] for own in there)} there and none here"
    old, new = ({own["name"]: _spelt_outcome(own) for own in all_} for all_ in (there, here))
    for name in [*new, *old]:
        if old.get(name) != new.get(name):
            was, now = old.get(name, "missing"), new.get(name, "missing")
            return f"{name} is {was} there and {now} here{_renamed(name, old, new)}"
    return f"their order is {', '.join(old)} there and {', '.join(new)} here"


def _renamed(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """A question, where a name that is missing here or there is nearly another."""
    return meant(name, old if name not in old else new if name not in new else ())


def _spelt_outcome(stored: Mapping[str, Any]) -> str:
    """An outcome as a study file has it: "minimize", or { high = 20.0 }."""
    facts = {k: v for k, v in stored.items() if k not in ("name", "kind") and v is not None}
    if facts.keys() == {"direction"}:
        return json.dumps(facts["direction"])
    return f"{{ {', '.join(f'{key} = {_toml(value)}' for key, value in facts.items())} }}"


def _toml(value: Any) -> str:
    """A value as TOML has it; an open end of bounds is an infinite one."""
    if isinstance(value, list):
        ends = ["-inf" if i == 0 else "inf" for i in range(len(value))]
        parts = [end if v is None else _toml(v) for v, end in zip(value, ends, strict=True)]
        return f"[{', '.join(parts)}]"
    return json.dumps(value)


def _difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """The first parameter that differs, as study files write it."""
    name = next(name for name in [*here, *there] if there.get(name) != here.get(name))
    old, new = (_spelt(s[name]) if name in s else "missing" for s in (there, here))
    return f"{name} is {old} there and {new} here"


def _spelt(stored: Mapping[str, Any]) -> str:
    """A distribution as a study file has it: { float = [0.1, 1.0], log = true }."""
    kind, facts = stored.get("name"), stored.get("attributes", {})
    if kind == "CategoricalDistribution":
        parts = [f"categories = {json.dumps(list(facts.get('choices', ())))}"]
    else:
        word = "int" if kind == "IntDistribution" else "float"
        word = "fidelity" if "target" in stored else word
        parts = [f"{word} = [{facts.get('low')}, {facts.get('high')}]"]
        parts += ["log = true"] * bool(facts.get("log"))
        step = facts.get("step")
        parts += [f"step = {step}"] * (step not in (None, 1) or (word == "float" and step == 1))
        parts += [f"target = {stored.get('target')}"] * ("target" in stored)
    parts += [f'role = "{stored.get("role")}"'] * ("role" in stored)
    when = stored.get("when", {})
    parents = ", ".join(f"{parent} = {json.dumps(values)}" for parent, values in when.items())
    parts += [f"when = {{ {parents} }}"] * bool(when)
    return f"{{ {', '.join(parts)} }}"


def _differs(file: StudyFile, what: str) -> StudyError:
    return StudyError(
        f"{file.path.name}: study {file.name!r} exists in {shown(file)} with a different {what}; "
        "change it back, or give this study another name"
    )


class AwayError(StorageInternalError):
    """A storage that was tried again and again, and is away."""


def storage_errors() -> tuple[type[Exception], ...]:
    """What a storage raises that is busy or away: some let their drivers' errors through."""
    drivers = {"grpc": "RpcError", "redis": "RedisError"}
    loaded = [getattr(sys.modules[m], name) for m, name in drivers.items() if m in sys.modules]
    return (StorageInternalError, OSError, *loaded)


def retry(action: Callable[[], T], *only: type[Exception], tries: int = TRIES) -> T:
    """Try again, for half a minute unless told otherwise, while a storage is busy or away.

    `only` are the errors after which to try again, by default all that a storage raises when it is
    away. A file that was deleted or overwritten does not come back.
    """
    again = only or storage_errors()
    for attempt in range(tries):
        try:
            return action()
        except again as error:
            said = first_line(error)
            if attempt == tries - 1 or GONE.search(said):
                raise AwayError(said) from error
            time.sleep(min(0.5 * 2**attempt, LONGEST))
    raise AssertionError


def shown(file: StudyFile) -> str:
    """The URL of the file's storage, without secrets."""
    return without_secrets(file.storage)


def without_secrets(url: str) -> str:
    """A storage's URL without anything that may be a password; a malformed one is its scheme.

    User names and options are left out, too, as passwords end up there by mistake.
    """
    if _is_file(url):
        return url
    found = URL.fullmatch(url)
    if found is None:
        scheme = re.match(r"[\w+.-]+(?=:)", url)
        return f"{scheme[0]}://…" if scheme else "the storage"
    user = "" if found["user"] is None else "…@"
    return f"{found['scheme']}://{user}{found['place']}{'?…' if found['query'] else ''}"


def _is_file(url: str) -> bool:
    """Whether it is a file's, whose name may have any characters."""
    return url.startswith(("sqlite:///", "journal:///"))


def check_url(url: str) -> None:
    """Refuse a URL that would be misread: drivers then show parts of passwords in their errors."""
    if _is_file(url):
        return
    found = URL.fullmatch(url)
    if found is not None:
        reader = "redis" if found["scheme"] in ("redis", "rediss", "grpc") else ""
        if USER[reader].fullmatch(found["user"] or ""):
            return
    raise StudyError(
        f"{without_secrets(url)} cannot be opened: a storage must be a URL like "
        "scheme://user:password@host:port/database; in a password write @ as %40, : as %3A, "
        "/ as %2F and ? as %3F"
    )


def first_line(error: Exception) -> str:
    """What an error says, in one line."""
    while isinstance(error, StorageInternalError) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # Optuna's own words say little
    details = getattr(error, "details", None)  # gRPC's way
    said = str(details() if callable(details) else error).strip()
    return said.splitlines()[0] if said else repr(error)
