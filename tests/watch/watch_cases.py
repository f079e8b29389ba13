"""Searches to watch, a server to watch them with, and what a browser would send."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import create_trial

from optpair.watch.server import Server
from optpair.watch.sources import Source
from shell_cases import TINY

SPACE = {"x": FloatDistribution(-1, 1), "c": CategoricalDistribution(["a", "b"])}
FILE = """
[study]
evaluations = 12
{storage}

[settings]
{settings}

[space]
x = {{ float = [-1, 1] }}
c = {{ categories = ["a", "b"] }}
"""


def study_file(folder: Path, storage: str = "") -> Path:
    path = folder / "study.toml"
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in TINY.items())
    line = f'storage = "{storage}"' if storage else ""
    path.write_text(FILE.format(settings=settings, storage=line), encoding="utf-8")
    return path


def add(study: optuna.Study, i: int) -> None:
    """The i-th of some spread-out trials."""
    x, c = -1 + 2 * (0.618034 * i % 1), "ab"[i % 2]
    value = (x - 0.3) ** 2 + (c == "b")
    study.add_trial(create_trial(params={"x": x, "c": c}, distributions=SPACE, value=value))


@contextlib.contextmanager
def serving(sources: Sequence[Source], **options: Any) -> Iterator[Server]:
    """A server that runs meanwhile."""
    with Server(sources, **options) as server:
        server.hall.open()
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            server.hall.close()
            thread.join(5)


def fetch(
    server: Server,
    path: str = "/",
    headers: dict[str, str] | None = None,
    form: dict[str, str] | None = None,
) -> tuple[int, str, dict[str, str]]:
    """Status, text and headers; redirections are not followed."""
    port = urlsplit(server.url).port
    data = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers or {})
    try:
        with urllib.request.build_opener(_Still).open(request, timeout=30) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


class _Still(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
