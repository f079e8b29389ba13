"""The live page in a real browser: it follows by itself, keeps what was chosen, takes orders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest
from browser import Tab, tab
from watch_cases import add, serving, study_file, until

from optpair.studies import control
from optpair.studies.config import load
from optpair.studies.storage import open_storage, open_study
from optpair.watch import boards
from optpair.watch.stored import Stored

REQUIRED = "OPTPAIR_REQUIRE_CHROMIUM"
"""Where this is set, as in CI, a missing browser is a failure and not a skip."""

ELSEWHERE = "data:text/html,<p>another site</p>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, and there is no Chromium")
        pytest.skip("no Chromium: apt-get install chromium")
    with tab(program, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def test_the_page_lives(page: Tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "INTERVAL", 0.1)
    file = load(study_file(tmp_path, "journal:///s.log"))
    study = open_study(file)
    for i in range(5):
        add(study, i)
    with serving([Stored(file.storage, file.name, file)]) as it:
        page.look(390, 700, "dark")
        page.open(it.url)
        page.until("!!document.querySelector('#cloud')")
        assert page.run("document.documentElement.scrollWidth") == 390
        page.run("window.same = true; document.querySelectorAll('th button')[2].click()")
        page.run("document.querySelector('#across').value = '1'; scrollTo(0, 900)")
        add(study, 5)
        page.until("document.querySelectorAll('tbody tr').length === 6")
        assert page.run("window.same")  # it was not loaded again
        assert page.run("scrollY") == 900
        assert page.run("document.querySelectorAll('th button')[2].dataset.sorted") == "up"
        assert page.run("document.querySelector('#across').value") == "1"
        page.run("document.querySelector('button[value=pause]').click()")
        page.until("!!document.querySelector('.badge.paused')")
        assert control.read(study).paused
        assert page.console == []
        _others_cannot(page, it.url, it.token)
        assert control.read(study) == control.Control(True, 0)
        page.open(it.url)
    page.until("!document.getElementById('gone').hidden")  # it says that the server has ended


def _others_cannot(page: Tab, url: str, token: str) -> None:
    """Another site reads nothing, and its orders are refused, even with the token."""
    base = url.partition("?")[0]
    page.open(ELSEWHERE)
    assert page.run(f"fetch('{url}').then(() => 'read', () => 'refused')") == "refused"
    form = f"new URLSearchParams({{token: '{token}', order: 'stop'}})"
    sent = f"fetch('{base}study/0/order', {{method: 'POST', mode: 'no-cors', body: {form}}})"
    page.run(f"{sent}.then(() => 'sent', () => 'blocked')")


def test_a_script_in_a_name_does_nothing(page: Tab, tmp_path: Path) -> None:
    url = f"journal:///{tmp_path}/s.log"
    name = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    study = optuna.create_study(study_name=name, storage=open_storage(url))
    add(study, 0)
    page.console.clear()
    with serving([Stored(url, name)]) as it:
        page.look(1200, 900)
        page.open(it.url)
        page.until("document.body.innerText.includes('1 told')")
        until(lambda: it.hall.boards[0].asked == 1)
        assert page.run("document.title").startswith("<img src=x")
        assert page.run("document.images.length") == 0
    assert page.console == []
