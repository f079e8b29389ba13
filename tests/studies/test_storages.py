"""Storages other than a database, storages that go away, and drivers that are missing."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import optuna
import psycopg
import pytest
from optuna.exceptions import StorageInternalError
from typer.testing import CliRunner

from optpair.cli.app import app
from optpair.studies import commands, lifecycle, storage, worker
from optpair.studies.config import StudyFile, load
from optpair.studies.endings import Ending
from optpair.studies.storage import open_study
from optpair.studies.worker import record
from study_cases import gave

FILE = """
[study]
evaluations = 6
sampler = "random"
storage = "{url}"
stale_after = 2

[objective]
command = ["{python}", "-c", "import sys, time; time.sleep(0.2); print(sys.argv[1])", "{{x}}"]

[space]
x = {{ float = [-1, 1] }}
"""
SERVER = """
import sys, warnings
warnings.simplefilter("ignore")
from optuna.storages import get_storage, run_grpc_proxy_server
run_grpc_proxy_server(get_storage(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]))
"""


def write(folder: Path, url: str) -> Path:
    path = folder / "study.toml"
    path.write_text(FILE.format(url=url, python=sys.executable), encoding="utf-8")
    return path


@pytest.fixture
def grpc(tmp_path: Path, free_port: int) -> Iterator[str]:
    """Optuna's proxy before an SQLite file."""
    pytest.importorskip("grpc", reason="pip install 'optpair[grpc]'")
    command = [sys.executable, "-c", SERVER, f"sqlite:///{tmp_path}/behind.db", str(free_port)]
    server = subprocess.Popen(command)
    url = f"grpc://127.0.0.1:{free_port}"
    try:
        proxy: Any = storage.open_storage(url)
        proxy.wait_server_ready(timeout=60)
        proxy.close()
        yield url
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(params=["journal", "grpc"])
def url(request: pytest.FixtureRequest) -> str:
    return "journal:///j.log" if request.param == "journal" else request.getfixturevalue("grpc")


def test_two_workers_share_it_and_one_is_killed(tmp_path: Path, url: str) -> None:
    path = write(tmp_path, url)
    study = open_study(load(path))
    command = [sys.executable, "-W", "error", "-m", "optpair", "run", str(path), "--json"]
    first, second = (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    for _ in range(600):
        running = [
            lifecycle.row(t, load(path)) for t in study.trials if lifecycle.state(t) == "running"
        ]
        if any(t["params"] and t["worker"].endswith(f":{first.pid}") for t in running):
            break
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    output, error = second.communicate(timeout=60)
    assert second.returncode == 0, error
    assert json.loads(output)["counts"] == {"told": 6, "stale": 1}
    for trial in study.trials:
        assert trial.value is None or trial.value == trial.params["x"]


# Optuna leaves the connection of a storage that it could not make to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_workers_that_start_together_make_one_study(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """Each finds no tables, and makes them."""
    url = f"sqlite:///{tmp_path}/new.db"
    if kind == "postgres":
        server = request.getfixturevalue("postgres")
        url = server.removesuffix("postgres") + "new"
        with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("CREATE DATABASE new")
    file = load(write(tmp_path, url))
    together = threading.Barrier(6, timeout=60)

    def start(_: int) -> optuna.Study:
        together.wait()
        study = open_study(file)
        study.tell(study.ask(dict(file.space)), 1.0)
        return study

    with ThreadPoolExecutor(6) as pool:
        studies = list(pool.map(start, range(6)))
    assert len({study._study_id for study in studies}) == 1
    assert all(len(study.trials) == 6 for study in studies)
    for study in studies:
        backend: Any = study._storage
        backend._backend.engine.dispose()
    gc.collect()


def test_a_missing_driver_is_named(tmp_path: Path) -> None:
    """In a process where none is installed."""
    script = f"""
import sys
for name in ("psycopg", "psycopg2", "pymysql", "MySQLdb", "redis", "grpc"):
    sys.modules[name] = None
from pathlib import Path
from optpair.studies.config import load
from optpair.studies.storage import open_study
path = Path({str(tmp_path / "study.toml")!r})
for scheme in ("postgresql", "postgresql+psycopg", "mysql", "mysql+pymysql", "redis", "grpc"):
    text = "[study]\\nstorage = '%s://me:secret@h/d'\\n[space]\\nx = {{ int = [0, 1] }}"
    path.write_text(text % scheme)
    try:
        open_study(load(path))
    except ValueError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "secret" not in done.stdout
    needs = "needs a driver that is not installed: pip install"
    assert done.stdout.splitlines() == [
        f"postgresql://…@h/d {needs} psycopg2, or write postgresql+psycopg:// and pip install "
        "optpair[postgres]",
        f"postgresql+psycopg://…@h/d {needs} optpair[postgres]",
        f"mysql://…@h/d {needs} mysqlclient, or write mysql+pymysql:// and pip install "
        "optpair[mysql]",
        f"mysql+pymysql://…@h/d {needs} optpair[mysql]",
        f"redis://…@h/d {needs} optpair[redis]",
        f"grpc://…@h/d {needs} optpair[grpc]",
    ], done.stderr


SLIPS = (
    "postgresql://me:secret:5432/d",  # no host
    "postgresql://me:secret/d",
    "postgresql://me:se?secret@h/d",
    "postgresql://me@h/d?password=p@secret",
    "postgresql://me:x@h:secret/d",
    "postgresql://me:x@h d/secret",
    "redis://me:secret:/0",
    "postgresql:/me:secret@h/d",
    "postgresql//me:secret@h/d",
    "me:secret@h/d",
)
MISREAD = (
    "postgresql+psycopg://me:p@secret@127.0.0.1/d",
    "mysql+pymysql://me:p@secret@127.0.0.1/d",
    "postgresql+psycopg://m/e:secret@127.0.0.1/d",
    "redis://me:p/secret@127.0.0.1/0",
)


@pytest.mark.parametrize("url", [*SLIPS, *MISREAD])
def test_a_slip_in_a_url_shows_no_password(tmp_path: Path, url: str) -> None:
    result = CliRunner().invoke(app, ["run", str(write(tmp_path, url))])
    assert result.exit_code == 1
    assert "secret" not in result.output
    assert "storage must be a URL like scheme://user:password@host" in result.stderr
    assert "write @ as %40" in result.stderr


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("redis://me:se@c:ret@h:1/0", "redis://…@h:1/0"),
        ("redis://h/0?password=secret&db=1", "redis://h/0?…"),
        ("mysql://h/d?user=me&sslpassword=secret", "mysql://h/d?…"),
        ("postgresql://me:secret@h:5432/d", "postgresql://…@h:5432/d"),
        ("postgresql://secret@[::1]:5432/d", "postgresql://…@[::1]:5432/d"),
        ("postgresql:///d?host=/run/secret", "postgresql:///d?…"),
        *((url, f"{url.partition(':')[0]}://…") for url in SLIPS if "://" in url),
        ("postgresql:/me:secret@h/d", "postgresql://…"),
        ("postgresql//me:secret@h/d", "the storage"),
        ("secret@h", "the storage"),
        ("sqlite:////folder/a:b@c/s.db", "sqlite:////folder/a:b@c/s.db"),
        ("journal:////folder/a:b@c.log", "journal:////folder/a:b@c.log"),
    ],
)
def test_passwords_are_not_shown(tmp_path: Path, url: str, seen: str) -> None:
    assert storage.shown(load(write(tmp_path, url))) == seen


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://me:secret@127.0.0.1:{port}/db",
        "journal:///no/such/folder/j.log",
        "sqlite:///no/such/folder/s.db",
        "grpc://127.0.0.1:{port}",
        "grpc://127.0.0.1:many",
        "nonsense",
    ],
)
def test_a_storage_that_is_not_there_is_an_error_at_once(
    tmp_path: Path, url: str, free_port: int
) -> None:
    if url.startswith("grpc"):
        pytest.importorskip("grpc", reason="pip install 'optpair[grpc]'")
    begin = time.monotonic()
    path = write(tmp_path, url.format(port=free_port))
    result = CliRunner().invoke(app, ["run", str(path)])
    assert result.exit_code == 1
    assert "cannot be opened: " in result.stderr
    assert "secret" not in result.stderr
    assert time.monotonic() - begin < 10


class Away:
    """A call that fails a number of times, as if the storage were away, and then succeeds."""

    def __init__(self, times: int, call: Any) -> None:
        self.left, self.call = times, call

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.left -= 1
        if self.left >= 0:
            raise StorageInternalError("no route to host")
        return self.call(*args, **options)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFile:
    monkeypatch.setattr(storage.time, "sleep", lambda seconds: None)
    return load(write(tmp_path, "sqlite:///s.db"))


def test_a_value_waits_for_its_storage(file: StudyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(file)
    trial = study.ask(dict(file.space))
    monkeypatch.setattr(study, "tell", Away(3 * storage.TRIES, study.tell))
    said: list[str] = []
    record(study, trial, file, trial.params, gave(0.25), said.append)
    assert [t.value for t in study.trials] == [0.25]
    assert len(said) == 1
    assert "gave" in said[0]
    assert "no route to host" in said[0]


def test_a_value_that_could_not_be_stored_is_said(
    file: StudyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = open_study(file)
    trial = study.ask(dict(file.space))
    monkeypatch.setattr(worker, "PATIENT", 2)
    monkeypatch.setattr(study, "tell", Away(10**6, study.tell))
    said: list[str] = []
    with pytest.raises(storage.AwayError, match="no route to host"):
        record(study, trial, file, trial.params, gave(0.25, 0.5), said.append)
    assert said[-1] == "trial 0 gave 0.25 with noise_var 0.5, which could not be stored"


def test_a_storage_that_stays_away_is_an_error(
    file: StudyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_study(file)
    monkeypatch.setattr(optuna.Study, "get_trials", Away(10**6, None))
    result = CliRunner().invoke(app, ["status", str(file.path)])
    assert result.exit_code == 1
    assert f"{file.storage} is away: no route to host" in result.stderr


def test_drivers_errors_are_known_when_they_are_loaded() -> None:
    for name, error in (("grpc", "RpcError"), ("redis", "RedisError")):
        module = pytest.importorskip(name)
        assert getattr(module, error) in storage.storage_errors()


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"garbage" * 999)])
def test_a_file_that_is_gone_is_not_waited_for(tmp_path: Path, harm: Any) -> None:
    file = load(write(tmp_path, "sqlite:///s.db"))
    study = open_study(file)
    trial = study.ask(dict(file.space))
    harm(tmp_path / "s.db")
    said: list[str] = []
    begin = time.monotonic()
    with pytest.raises(storage.AwayError, match=r"readonly|no such table|not a database"):
        record(study, trial, file, trial.params, gave(0.25), said.append)
    assert time.monotonic() - begin < 5
    assert said[-1] == "trial 0 gave 0.25, which could not be stored"


def test_an_interrupted_run_says_so_though_its_storage_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = commands.Ran(Ending("interrupted"), False)
    monkeypatch.setattr(commands, "run", lambda *_, **options: ran)
    result = CliRunner().invoke(app, ["run", str(write(tmp_path, "sqlite:///no/such/s.db"))])
    assert result.exit_code == 130
    assert "there is no study" in result.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_a_storage_that_is_away_at_the_end_undoes_nothing(
    file: StudyFile, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    arguments = ["run", str(file.path), "--workers", str(workers)]
    monkeypatch.setattr(commands, "_trials", lambda _: storage.retry(Away(10**6, None)))
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "all evaluations were made; the recommendation cannot be read: no route" in result.stdout
    problem = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["problem"]
    assert "no route to host" in problem
    assert lifecycle.ended(lifecycle.count(open_study(file).trials)) == file.evaluations


def test_a_recommendation_that_cannot_be_read_is_no_error(
    file: StudyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Sampler:
        def recommend(self, study: optuna.Study, **context: Any) -> Any:
            raise StorageInternalError("no route to host")

    monkeypatch.setattr(commands, "_answering", lambda file, study: Sampler())
    result = CliRunner().invoke(app, ["run", str(file.path)])
    assert result.exit_code == 0, result.output
    assert "6 of 6 evaluations" in result.stdout
    assert "the recommendation cannot be read: no route to host" in result.stdout
    assert CliRunner().invoke(app, ["recommend", str(file.path)]).exit_code == 1


def test_a_run_opens_its_study_once(file: StudyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    opens = storage.open_storage
    monkeypatch.setattr(
        storage, "open_storage", lambda *a, **o: (opened.append("once"), opens(*a, **o))[1]
    )
    assert CliRunner().invoke(app, ["run", str(file.path)]).exit_code == 0
    assert opened == ["once"]
