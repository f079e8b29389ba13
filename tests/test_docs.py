"""Every block of code in the documentation runs, and prints what the page says it prints."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import optpair
from optpair import acquisition

pytest.importorskip("optuna")

from pages import ROOT, Reader, blocks, forgetting

DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with forgetting(tmp_path):
        Reader(page).follow(text)


def test_every_public_name_is_on_a_page() -> None:
    listed = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
    objects = {line.rpartition(".")[2] for line in listed.splitlines() if line.startswith(":::")}
    functions = {name for name in acquisition.__all__ if name[0].islower()}
    assert {*optpair.__all__} - {"acquisition", "gp", "optima"} <= objects
    assert functions <= objects


@pytest.mark.parametrize("name", ["optuna.JESSampler", "sklearn.JESSearchCV"])
def test_every_answer_of_an_integration_is_on_its_page(name: str) -> None:
    module, _, owner = name.partition(".")
    found = getattr(importlib.import_module(f"optpair.integrations.{module}"), owner)
    text = (DOCS / "api" / "integrations.md").read_text(encoding="utf-8")
    listed = re.search(rf"::: .*{owner}\n    options:\n      members: \[(.*)\]", text)
    assert listed is not None
    answers = {"fit", "recommend", "belief", "done", "until", "predict", "report"}
    assert answers & vars(found).keys() == set(listed[1].split(", "))


def test_pages_have_code() -> None:
    count = {page: len(blocks((DOCS / page).read_text(encoding="utf-8"))) for page in PAGES}
    assert {"tour.md", "noise.md", "lab.md", "optuna.md", "machines.md", "faq.md"} <= {
        page for page, number in count.items() if number >= 3
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\n1 / 0\n```\n", "division"),
        ("```python\nprint('a')\n```\n```text\nb\n```\n", "a"),
        ("```perl\n```\n", "what is 'perl'"),
        ("```sh\npip install '.[nothing]'\n```\n", "nothing"),
        ("```sh\noptpair bench luck --coffee 3\n```\n", "coffee"),
        ("```sh\nmake coffee\n```\n", "coffee"),
        ("```sh\noptpair status none.toml\n```\n", "none.toml"),
        ('```toml title="a.toml"\n[space]\n```\n', "needs a parameter"),
        ("```python\n1\n", "not closed"),
    ],
)
def test_a_wrong_page_is_noticed(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, ArithmeticError, ValueError), match=message):
        Reader("page").follow(text)


def test_numbers_may_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Reader("page").follow("```python\nprint('x =', 1.5e-3)\n```\n\n```text\nx = 27\n```\n")


def test_the_search_of_the_site_finds_parts_of_names() -> None:
    """`csv` finds `read_csv`, and `when` finds `when=`."""
    said = re.search(r"separator: '(.*)'", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert said is not None
    assert {"read", "csv", "path"} <= set(re.split(said[1], "opt.read_csv(path)"))
    assert "when" in re.split(said[1], 'Int(2, 5, when={"kernel": "poly"})')
