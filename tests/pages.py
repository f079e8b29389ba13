"""The code on a page of Markdown, run as a reader would run it.

Blocks of a page run in order, in one folder and one namespace:

- `python` is executed; with a `title` it is written to a file of that name, as every block is;
- `toml` with a title must be a study file that loads;
- `sh` is run line by line: `optpair` in this process; of `optpair bench`, which takes hours, and of
  `optpair watch`, which ends with Ctrl-C, the options must exist, and of `pip install` and `make`,
  the extras and the targets;
- `text` is what was printed since the last such block, up to the numbers in it;
- `math` is not code.

Any other language is an error, so that no block goes unnoticed.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer import Typer
from typer.testing import CliRunner

from optpair.acquisition import registry
from optpair.cli.app import app
from optpair.studies.config import load

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its file name if it has one, its text and its line."""

    language: str
    title: str | None
    text: str
    line: int


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(m[1], m[2], m[3], text[: m.start()].count("\n") + 1) for m in FENCE.finditer(text)
    ]


class Reader:
    """Someone who follows a page in an empty folder, which is the current one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self._printed = ""

    def follow(self, text: str) -> None:
        """Run every block of a page."""
        assert text.count("```") == 2 * len(blocks(text)), f"{self.name}: a fence is not closed"
        for block in blocks(text):
            if block.title is not None:
                Path(block.title).write_text(block.text, encoding="utf-8")
            step = getattr(self, f"_{block.language}", None)
            assert step is not None, f"{self.name}:{block.line}: what is {block.language!r}?"
            step(block)

    def _python(self, block: Block) -> None:
        code = compile("\n" * block.line + block.text, self.name, "exec", dont_inherit=True)
        if block.title is None:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(code, self.names)
            self._printed += out.getvalue()

    def _toml(self, block: Block) -> None:
        assert block.title is not None, f"{self.name}:{block.line}: a study file has a title"
        load(block.title)

    def _csv(self, block: Block) -> None:
        assert block.title is not None, f"{self.name}:{block.line}: a table has a title"

    def _sh(self, block: Block) -> None:
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            if not words:
                continue
            program, *arguments = words
            if program == "optpair":
                if arguments[0] == "bench":
                    _invoke(line, benchmarks(), [*arguments[1:], "--help"])
                elif arguments[0] == "watch":
                    _invoke(line, app, [*arguments, "--help"])
                else:
                    self._printed += _invoke(line, app, arguments)
            elif program == "pip":
                assert arguments[0] == "install"
                for folder, extra in re.findall(r"(\S+)\[(.+)\]", line.replace("'", "")):
                    assert extra in _extras(folder), line
            else:
                assert program == "make", line
                assert set(arguments) <= _targets(), line

    def _text(self, block: Block) -> None:
        printed, self._printed = self._printed, ""
        assert masked(printed) == masked(block.text), f"{self.name}:{block.line}:\n{printed}"

    def _math(self, block: Block) -> None:
        pass


def _invoke(line: str, command: Typer, arguments: list[str]) -> str:
    """What a command prints; it must end well."""
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, f"{line}\n{done.output}{done.exception!r}"
    return done.stdout


def benchmarks() -> Typer:
    """The app of `optpair bench`, whether or not it is installed."""
    from optpair_bench.cli import app

    return app


def masked(text: str) -> list[str]:
    """Lines without the numbers, and without the folder that the page was followed in."""
    plain = text.replace(str(Path.cwd()), "FOLDER").replace("/home/me", "FOLDER")
    return [NUMBER.sub("#", line.rstrip()) for line in plain.strip().splitlines()]


def _extras(folder: str) -> set[str]:
    file = ROOT / folder / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    return set(project["optional-dependencies"])


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


@contextlib.contextmanager
def forgetting(folder: Path) -> Iterator[None]:
    """Afterwards, modules of the folder and registered acquisition functions are gone."""
    path, modules, entries = list(sys.path), set(sys.modules), dict(registry._entries)
    try:
        yield
    finally:
        sys.path[:] = path
        registry._entries.clear()
        registry._entries.update(entries)
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]
