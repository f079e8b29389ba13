"""The live page, open throughout a study that four workers run on PostgreSQL.

A short study, unless OPTPAIR_WATCH_TRIALS says how many trials: with 200 of them the engine itself
suggests, and the figures are shown by `pytest -s`.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from browser import Tab
from test_watch_browser import page as page  # a fixture

from optpair.integrations.optuna.attributes import revise
from optpair.studies import control, lifecycle
from optpair.studies.config import load
from optpair.studies.storage import open_study

TRIALS = int(os.environ.get("OPTPAIR_WATCH_TRIALS", "0"))
FILE = """
[study]
name = "throughout-{stamp}"
evaluations = {evaluations}
storage = "{storage}"
{sampler}

[objective]
python = "watched_objective:objective"

[space]
x = {{ float = [-5, 10] }}
y = {{ float = [0, 15] }}
"""
OBJECTIVE = """
import random, time

def objective(params):
    time.sleep(random.uniform(0.05, 0.15))
    if params["x"] > 9:
        raise RuntimeError("too far")
    return (params["x"] - 1) ** 2 + (params["y"] - 2) ** 2 + random.gauss(0, 0.1)
"""
ROWS = "[...document.querySelectorAll('section.trials tbody tr')].map(r => r.cells[0].innerText)"
ENDED = ROWS.replace(".map", ".filter(r => ['told', 'failed'].includes(r.cells[1].innerText)).map")


@pytest.fixture
def path(tmp_path: Path, postgres: str) -> Path:
    found = tmp_path / "study.toml"
    sampler = "" if TRIALS else 'sampler = "lattice"'
    text = FILE.format(
        stamp=time.time_ns(), evaluations=TRIALS or 24, storage=postgres, sampler=sampler
    )
    found.write_text(text, encoding="utf-8")
    (tmp_path / "watched_objective.py").write_text(OBJECTIVE, encoding="utf-8")
    return found


@contextlib.contextmanager
def program(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A command of optpair in a process of its own, which ends with the block."""
    command = [sys.executable, "-m", "optpair", *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)


@contextlib.contextmanager
def second_origin() -> Iterator[str]:
    """Another site on this machine."""

    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<!doctype html><p>another site</p>")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join(5)


def memory(process: subprocess.Popen[str]) -> float:
    """Megabytes that a process holds."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s*(\d+)", text)[0]) / 1024


def heap(page: Tab) -> dict[str, float]:
    """Megabytes of the page's scripts and its nodes, after what is not needed is gone."""
    page.call("HeapProfiler.collectGarbage")
    page.call("Performance.enable")
    found = {m["name"]: m["value"] for m in page.call("Performance.getMetrics")["metrics"]}
    return {"megabytes": found["JSHeapUsedSize"] / 2**20, "nodes": found["Nodes"]}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read as Linux has it")
def test_the_page_is_open_throughout(page: Tab, path: Path, request: pytest.FixtureRequest) -> None:
    study = open_study(load(path))
    request.addfinalizer(lambda: _close(study))
    page.look(1200, 900)
    page.console.clear()
    with program("watch", path, "--port", 0) as watch:
        assert watch.stdout is not None
        url = watch.stdout.readline().strip()
        page.open(url)
        page.run("window.same = true")
        counts, held = _follow(page, path, watch)
        told = [t.number for t in study.trials if lifecycle.state(t) in ("told", "failed")]
        page.until(f"{ENDED}.length === {len(told)}", 120)
        page.until("!document.querySelector('#live-report > p.note')", 300)  # no longer behind
        assert sorted(map(int, page.run(ENDED))) == told  # no trial is missing
        assert counts == sorted(counts)  # nor was one ever taken back
        assert page.run("window.same")  # it was never loaded again
        end, after = memory(watch), _again(page, study, watch, 12 if TRIALS else 3)
        long = heap(page)
        assert page.console == []
        others = _second_origin(page, url)
        assert control.read(study) == control.Control()
        assert others == {"read": "refused", "framed": False, "form": "refused"}
        page.open(url)
        page.until(f"{ENDED}.length === {len(told)}")
        fresh = heap(page)
    start, middle = held[0], held[len(held) // 2]
    print(
        f"\n{len(told)} trials, seen in {len(set(counts))} steps; the server held {start:.0f} MB at"
    )
    print(f"first, {middle:.0f} half-way, {end:.0f} at the end; {after:.0f} after more questions;")
    print(f"page {long}, loaded anew {fresh}")
    assert len(told) == (TRIALS or 24)
    assert after < 1.25 * end
    assert long["nodes"] < 2 * fresh["nodes"]  # what was replaced is gone
    assert long["megabytes"] < 2 * fresh["megabytes"] + 2


def _close(study: optuna.Study) -> None:
    """Give back the connections."""
    storage: Any = study._storage
    getattr(storage, "_backend", storage).engine.dispose()


def _follow(page: Tab, path: Path, watch: subprocess.Popen[str]) -> tuple[list[int], list[float]]:
    """Run the study; how many ended trials the page had, and what the server held, time by time."""
    counts, held = [0], [memory(watch)]
    with program("run", path, "--workers", 4, "--json", "--keep-going") as run:
        output: list[str] = []
        assert run.stdout is not None
        reader = threading.Thread(target=lambda: output.append(run.stdout.read()))  # type: ignore[union-attr]
        reader.start()
        while reader.is_alive():
            counts.append(len(page.run(ENDED)))
            held.append(memory(watch))
            time.sleep(0.1)
        assert json.loads(output[0])["ended"] == (TRIALS or 24)
    return counts, held


def _again(page: Tab, study: optuna.Study, watch: subprocess.Popen[str], times: int) -> float:
    """What the server holds after the model was asked again and again about as many trials."""
    first = ROWS.replace("r.cells[0]", "r.cells[2]")
    for i in range(times):
        revise(study, 0, 100.0 + i)
        page.until(f"{first}.includes('{100 + i}')", 120)
        page.until("!document.querySelector('#live-report > p.note')", 120)
    return memory(watch)


def _second_origin(page: Tab, url: str) -> dict[str, Any]:
    """What another site on this machine gets, which even knows the token."""
    base, _, token = url.partition("?token=")
    with second_origin() as other:
        page.open(other)
        read = page.run(f"fetch('{url}').then(r => r.text()).then(() => 'read', () => 'refused')")
        page.run(
            "new Promise(done => { const frame = document.createElement('iframe'); "
            f"frame.src = '{url}'; frame.onload = frame.onerror = done; setTimeout(done, 2000); "
            "document.body.append(frame); })"
        )
        framed = page.run("(() => { try { return !!frames[0].document.querySelector('main'); } "
                          "catch { return false; } })()")  # fmt: skip
        page.run(
            "(() => { const form = document.createElement('form'); form.method = 'post'; "
            f"form.action = '{base}study/0/order'; form.innerHTML = "
            f"`<input name=token value='{token}'><input name=order value=stop>`; "
            "document.body.append(form); form.submit(); })()"
        )
        page.until("document.body.innerText.includes('orders must come from')")
    return {"read": read, "framed": framed, "form": "refused"}
