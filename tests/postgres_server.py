"""A real PostgreSQL server for the tests, on loopback, in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REQUIRED = "OPTPAIR_REQUIRE_POSTGRES"
"""Where this is set, as in CI, a missing server is a failure and not a skip."""


def _programs() -> Path | None:
    places = [Path(p).parent for p in [shutil.which("initdb")] if p]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((p for p in places if (p / "initdb").exists() and (p / "postgres").exists()), None)


@pytest.fixture
def free_port() -> int:
    return _free_port()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of an empty database."""
    programs = _programs()
    if programs is None:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, and there is no PostgreSQL server")
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    user: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary) / "data"
        if os.getuid() == 0:  # the server refuses to run as root
            entry = pwd.getpwnam("postgres")
            user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            os.chown(temporary, entry.pw_uid, entry.pw_gid)
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "optpair", "-A", "trust", "--no-sync"],
            check=True,
            capture_output=True,
            cwd=temporary,
            **user,
        )
        port = _free_port()
        options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": "60",
        }
        flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-p", str(port), *flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=temporary,
            **user,
        )
        try:
            url = f"optpair@127.0.0.1:{port}/postgres"
            _wait(f"postgresql://{url}", server)
            yield f"postgresql+psycopg://{url}"
        finally:
            server.send_signal(signal.SIGINT)  # throws clients out, where SIGTERM waits for them
            server.wait(30)


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(300):
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            assert server.poll() is None, "the PostgreSQL server ended"
            time.sleep(0.1)
    raise AssertionError("the PostgreSQL server did not start")
