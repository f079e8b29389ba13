"""The page of equations has the equations of the docstrings, and no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "maths.md"
TAG = r"\(([A-Z]\d+[a-z]?)\)"
FIRST = re.compile(rf" {{4}}{TAG}  (.+)")  # the tag, then the equation
LAST = re.compile(rf" {{4}}(\S.*?) {{2,}}{TAG}")  # the equation, then the tag
MORE = re.compile(r" {10}(\S.*)")  # the rest of an equation that began with its tag

Equation = tuple[str, str]


def equations(text: str) -> Iterator[Equation]:
    """Tags and equations of indented lines, without blanks."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if found := FIRST.fullmatch(line):
            tag, parts = found[1], [found[2]]
            for after in lines[i + 1 :]:
                if (more := MORE.fullmatch(after)) is None:
                    break
                parts.append(more[1])
        elif found := LAST.fullmatch(line):
            tag, parts = found[2], [found[1]]
        else:
            continue
        yield tag, "".join("".join(parts).split())


def docstrings(source: str) -> Iterator[str]:
    """All docstrings of a module."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds):
            yield ast.get_docstring(node) or ""


def in_the_code() -> list[Equation]:
    """The equations of every docstring."""
    return [
        equation
        for path in sorted((ROOT / "src" / "optpair").rglob("*.py"))
        for text in docstrings(path.read_text(encoding="utf-8"))
        for equation in equations(text)
    ]


def test_an_equation_stands_in_one_docstring() -> None:
    tags = [tag for tag, _ in in_the_code()]
    assert len(tags) >= 30
    assert sorted(tags) == sorted(set(tags))


def test_the_page_has_the_equations_of_the_docstrings() -> None:
    page = list(equations(PAGE.read_text(encoding="utf-8")))
    assert len(page) == len(dict(page))
    assert dict(page) == dict(in_the_code())


def test_every_tag_in_the_code_is_an_equations() -> None:
    known = dict(in_the_code())
    for path in (ROOT / "src" / "optpair").rglob("*.py"):
        for tag in re.findall(TAG, path.read_text(encoding="utf-8")):
            assert tag in known, f"{path.relative_to(ROOT)}: ({tag})"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("    (A1)  x = y + z", [("A1", "x=y+z")]),
        ("    x = y +  z      (A1)", [("A1", "x=y+z")]),
        ("    (A1)  x = y,\n          z = 1\n\n          not this", [("A1", "x=y,z=1")]),
        ("with (A1)  and x = y (A1)", []),
    ],
)
def test_what_an_equation_looks_like(text: str, found: list[Equation]) -> None:
    assert list(equations(text)) == found
