"""The live page over loopback: what it shows, who may read it, and who may give orders."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from watch_cases import add, fetch, serving, study_file, until

from optpair.report import Subject
from optpair.studies import control
from optpair.studies.config import load
from optpair.studies.storage import open_study
from optpair.watch import boards, server
from optpair.watch.server import Server
from optpair.watch.sources import Failure, Running, View
from optpair.watch.stored import Stored

EVIL = "<script>throw 1</script>"


class Given:
    """A search that needs no storage, with what was ordered of it."""

    def __init__(self, name: str = "given", paused: bool | None = False) -> None:
        self.name, self.place, self.ordered = name, "nowhere", list[str]()
        self.view = View(
            None,
            {"told": 3, "failed": 5},
            (Running(8, "running", {"x": 0.25, EVIL: EVIL}, "2026-01-01 10:00:00", "host:1"),),
            tuple(Failure(i, f"exit code {i}: {EVIL}", {EVIL: EVIL}) for i in range(5)),
            evaluations=10,
            paused=paused,
        )
        self.error: Exception | None = None

    def read(self) -> View:
        if self.error is not None:
            raise self.error
        return self.view

    def subject(self) -> Subject:
        raise AssertionError

    def give(self, order: str) -> None:
        if order not in ("pause", "resume", "stop"):
            raise ValueError(f"no {order!r}")
        self.ordered.append(order)


def read(hall: Server, path: str = "/", words: str = "of 10") -> str:
    """A page, once its search was read."""
    until(lambda: words in fetch(hall, path)[1])
    return fetch(hall, path)[1]


def test_the_page_shows_what_runs_and_what_failed() -> None:
    with serving([Given(EVIL)]) as it:
        text = read(it)
        status, _, headers = fetch(it)
    assert status == 200
    assert "8 of 10 evaluations" in text
    assert "trial 8</strong> host:1 · since 2026-01-01 10:00:00<code>x = 0.25" in text
    assert text.index("exit code 4:") < text.index("exit code 2:")  # the last first
    assert "<summary>2 more</summary>" in text
    assert EVIL not in text
    assert "&lt;script&gt;throw 1&lt;/script&gt;" in text
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert "'unsafe-inline' 'sha256" not in policy
    assert "; connect-src 'self'; form-action 'self'; base-uri 'none'; " in policy
    assert policy.endswith("frame-ancestors 'none'")
    assert text.count("<script>") == policy.count("sha256-") == 2
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers
    assert '<noscript><meta http-equiv="refresh"' in text


def test_several_searches_have_a_card_each() -> None:
    with serving([Given("one"), Given("two")]) as it:
        text = read(it, words="8 of 10")
        until(lambda: fetch(it)[1].count("8 of 10") == 2)
        token = it.token
        assert f'href="/study/1?token={token}"' in fetch(it, f"/?token={token}")[1]
        assert "<h1>two</h1>" in fetch(it, "/study/1")[1]
        assert fetch(it, "/study/2")[0] == 404
        assert fetch(it, "/study/x")[0] == 404
        assert fetch(it, "/etc/passwd")[0] == 404
        assert fetch(it, "/study/0/../1")[0] == 404
    assert "<h1>2 searches</h1>" in text
    assert 'href="/study/1"' in text


def test_only_the_token_shows_buttons() -> None:
    with serving([Given()]) as it:
        assert "<form" not in read(it)
        text = fetch(it, f"/?token={it.token}")[1]
        assert text.count("<form") == 2
        assert text.count(f'name="token" value="{it.token}"') == 2
        assert fetch(it, "/?token=wrong")[0] == 403
        assert fetch(it, "/?token=%C3%A9")[0] == 403
    assert len(it.token) >= 32


def test_nobody_takes_orders_of_a_foreign_study() -> None:
    with serving([Given(paused=None)]) as it:
        read(it)
        assert "<form" not in fetch(it, f"/?token={it.token}")[1]


def test_an_order_is_given_once_and_by_post() -> None:
    source = Given()
    with serving([source]) as it:
        form = {"token": it.token, "order": "pause"}
        status, _, headers = fetch(it, "/study/0/order", form=form)
        assert (status, headers["Location"]) == (303, f"/study/0?token={it.token}")
        origin = {"Origin": f"http://127.0.0.1:{it.server_port}", "Sec-Fetch-Site": "same-origin"}
        assert fetch(it, "/study/0/order", origin, form={**form, "order": "stop"})[0] == 303
        fetch(it, f"/study/0/order?token={it.token}&order=stop")  # a GET orders nothing
        assert fetch(it, "/study/0/order", form={**form, "order": "dance"})[0] == 409
        assert fetch(it, "/study/0", form=form)[0] == 404
        assert fetch(it, "/study/7/order", form=form)[0] == 404
    assert source.ordered == ["pause", "stop"]


@pytest.mark.parametrize(
    ("headers", "form", "status"),
    [
        ({}, {"order": "stop"}, 403),
        ({}, {"order": "stop", "token": "wrong"}, 403),
        ({"Origin": "http://evil.example"}, {}, 403),
        ({"Origin": "null"}, {}, 403),
        ({"Origin": "http://127.0.0.1:1"}, {}, 403),  # another port is another site
        ({"Sec-Fetch-Site": "cross-site"}, {}, 403),
        ({"Sec-Fetch-Site": "same-site"}, {}, 403),
        ({"Host": "evil.example"}, {}, 421),
        ({"Host": "evil.example:{port}"}, {}, 421),
        ({"Host": "127.0.0.1:1"}, {}, 421),
        ({"Content-Length": "x"}, {}, 403),
    ],
)
def test_orders_that_are_refused(
    headers: dict[str, str], form: dict[str, str], status: int
) -> None:
    source = Given()
    with serving([source]) as it:
        named = {key: value.format(port=it.server_port) for key, value in headers.items()}
        sent = form or {"order": "stop", "token": it.token}
        assert fetch(it, "/study/0/order", named, sent)[0] == status
    assert source.ordered == []


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("[::1]:{port}", 200),
        ("evil.example:{port}", 421),  # a name that was made to lead here
        ("192.0.2.7:{port}", 421),
        ("127.0.0.1", 421),
        ("[:{port}", 421),
    ],
)
def test_a_page_is_read_by_the_names_of_this_machine(host: str, status: int) -> None:
    with serving([Given()]) as it:
        assert fetch(it, "/", {"Host": host.format(port=it.server_port)})[0] == status


def test_beyond_loopback_reading_needs_the_token() -> None:
    with serving([Given()], host="0.0.0.0") as it:
        assert not it.local
        assert fetch(it)[0] == 403
        assert fetch(it, "/wait?version=x")[0] == 403
        assert fetch(it, f"/?token={it.token}")[0] == 200
        address, name = f"192.0.2.7:{it.server_port}", f"evil.example:{it.server_port}"
        assert fetch(it, f"/?token={it.token}", {"Host": address})[0] == 200
        assert fetch(it, f"/?token={it.token}", {"Host": name})[0] == 421


def test_news_come_when_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.2)
    monkeypatch.setattr(boards, "INTERVAL", 0.05)
    source = Given()
    with serving([source]) as it:
        version = _version(read(it))
        assert fetch(it, f"/wait?version={version}")[:2] == (204, "")
        monkeypatch.setattr(server, "PATIENCE", 20.0)
        answers: list[Any] = []
        waiting = threading.Thread(
            target=lambda: answers.append(fetch(it, f"/wait?version={version}"))
        )
        waiting.start()
        source.view = View(None, {"told": 9}, evaluations=10)
        waiting.join(10)
        assert answers[0][0] == 200
        assert "9 of 10 evaluations" in answers[0][1]
        assert _version(answers[0][1]) != version


def _version(text: str) -> str:
    found = re.search(r'data-version="(\w+)"', text)
    assert found is not None
    return found[1]


def test_a_search_that_cannot_be_read_is_said_and_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boards, "INTERVAL", 0.05)
    source = Given()
    with serving([source]) as it:
        read(it)
        source.error = OSError(f"no route to {EVIL}\nand more")
        text = read(it, words="cannot be read")
        assert "no route to &lt;script&gt;" in text
        assert "and more" not in text
        assert "8 of 10 evaluations" in text  # what was known stays
        source.error = None
        until(lambda: "cannot be read" not in fetch(it)[1])


def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS", 2)
    with serving([Given()]) as it:
        version = _version(read(it))
        until(lambda: it._room._value == 2)  # looked at, not taken: a probe would turn others away
        waits = [
            threading.Thread(target=fetch, args=(it, f"/wait?version={version}")) for _ in range(2)
        ]
        for wait in waits:
            wait.start()
        until(lambda: it._room._value == 0)
        with pytest.raises(OSError, match=r"."):
            fetch(it)
        it.hall.close()  # lets them go
        for wait in waits:
            wait.join(5)
        until(lambda: fetch(it)[0] == 200)


def test_the_page_pauses_and_stops_a_study(tmp_path: Path) -> None:
    file = load(study_file(tmp_path, "journal:///s.log"))
    study = open_study(file)
    add(study, 0)
    with serving([Stored(file.storage, file.name, file)]) as it:
        for order, expected in (
            ("pause", control.Control(True, 0)),
            ("resume", control.Control(False, 0)),
            ("stop", control.Control(False, 1)),
        ):
            form = {"token": it.token, "order": order}
            assert fetch(it, "/study/0/order", form=form)[0] == 303
            assert control.read(study) == expected
        fetch(it, "/study/0/order", form={"token": it.token, "order": "pause"})
        until(lambda: '<strong class="badge paused">' in fetch(it)[1])
        assert ">Resume</button>" in fetch(it, f"/?token={it.token}")[1]
