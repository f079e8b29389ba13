"""Imports point only along the data flow: a module may import what is to its left."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import optpair

ROOT = Path(optpair.__file__).parent

FLOW = (
    "default",
    "stderr",
    "programs",
    "runtime",
    "cube",
    "space",
    "history",
    "scaling",
    "gp",
    "settings",
    "effort",
    "maximize",
    "pairs",
    "acquisition",
    "failures",
    "stages",
    "engine",
    "ahead",
    "insight",
    "files",
    "saving",
    "report",
    "optimizer",
    "search",
)
"""Left to right; a package counts as one."""

SHELLS = {
    "demo": set(FLOW),
    "integrations": set(FLOW),
    "study": {*FLOW, "integrations"},
    "exits": set(),
    "cli": {*FLOW, "demo", "study", "exits"},
}
"""What stands at the end of the flow, and what each may import, besides the public names."""

LAZY = {"demo", "study"}
"""What only functions of the command line may import, so that it starts fast."""

INSIDE = {
    "report": {
        "markup": set(),
        "subject": set(),
        "findings": {"subject"},
        "words": {"markup", "subject", "findings"},
        "axes": {"words"},
        "frame": {"markup", "axes"},
        "charts": {"markup", "subject", "findings", "words", "axes", "frame"},
        "cloud": {"markup", "subject", "findings", "words", "axes", "frame"},
        "page": {"markup", "subject", "findings", "words", "axes", "frame", "charts", "cloud"},
    },
    "gp": {
        "kernels": set(),
        "mixture": set(),
        "derivatives": {"kernels"},
        "priors": {"kernels"},
        "posterior": {"kernels", "priors"},
        "likelihood": {"kernels", "priors", "posterior"},
        "inference": {"priors", "likelihood"},
        "paths": {"kernels", "priors", "posterior"},
    },
}
"""What a module of a package may import of its own package."""

SHARED = {"base", "normal", "orthant", "truncation"}
"""The modules of `acquisition` that its ideas, one a file, may import; in this order."""


PUBLIC = "(public names)"
"""What `import optpair` stands for."""


def allowed(name: str) -> set[str]:
    """The modules that a module of this name may import besides itself."""
    if name in SHELLS:
        return SHELLS[name]
    if name not in FLOW:
        raise LookupError(
            f"optpair.{name} has no place in the data flow; say where it belongs in {__file__}"
        )
    return set(FLOW[: FLOW.index(name)])


def imported(source: str, package: str) -> list[tuple[str, bool]]:
    """The optpair modules that source text imports, as dotted paths, and whether at the top."""
    tree = ast.parse(source)
    inner = {
        node
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(outer, ast.If) and ast.unparse(outer.test) == "TYPE_CHECKING")
        for node in ast.walk(outer)
    }
    found = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [base])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        found += [
            (name.removeprefix("optpair.").replace("optpair", PUBLIC), node not in inner)
            for name in names
            if name.split(".")[0] == "optpair"
        ]
    return found


def inside_allowed(package: str, name: str) -> set[str]:
    """The modules of its own package that a module may import."""
    if package == "acquisition":
        order = ["normal", "orthant", "truncation", "base"]
        return set(order[: order.index(name)]) if name in SHARED else set(SHARED)
    modules = INSIDE.get(package)
    if modules is None:
        return set()
    if name not in modules:
        raise LookupError(f"optpair.{package}.{name} has no place yet; give it one in {__file__}")
    return modules[name]


def violations(path: str, source: str) -> list[str]:
    """What a file, at its path under the package, imports and should not."""
    parts = Path(path).with_suffix("").parts
    if parts == ("__init__",):
        return [
            f"{path} imports {name}"
            for name, top in imported(source, "optpair")
            if top and name.split(".")[0] in SHELLS
        ]
    own = parts[0]
    allowed(own)
    folder = parts if parts[-1] == "__init__" else parts[:-1]
    package = ".".join(["optpair", *(p for p in folder if p != "__init__")])
    bad = []
    for name, top in imported(source, package):
        first, *rest = name.split(".")
        if first == own:
            checked = parts[-1] != "__init__" and (own in INSIDE or own == "acquisition")
            if checked and rest and rest[0] not in inside_allowed(own, parts[1]) | {parts[1]}:
                bad.append(f"{path} imports {name}")
        elif first not in SHELLS and first not in FLOW:  # a name of optpair itself
            if own not in SHELLS:
                bad.append(f"{path} imports {name}")
        elif first not in allowed(own) or (own == "cli" and first in LAZY and top):
            bad.append(f"{path} imports {name}")
    return bad


FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES)
def test_imports_point_along_the_flow(path: str) -> None:
    assert violations(path, (ROOT / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", FILES)
def test_every_module_has_a_place(path: str) -> None:
    parts = Path(path).with_suffix("").parts
    if parts != ("__init__",):
        allowed(parts[0])
        if parts[0] in INSIDE and parts[-1] != "__init__":
            inside_allowed(parts[0], parts[1])


def test_the_whole_package_is_looked_at() -> None:
    assert {"gp/posterior.py", "acquisition/jes.py", "engine.py", "__init__.py"} <= set(FILES)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("space.py", "from optpair.engine import Engine"),
        ("space.py", "from optpair import history"),
        ("space.py", "import optpair.gp.kernels"),
        ("space.py", "from .history import Trial"),
        ("runtime.py", "from optpair.cube import Cube"),
        ("gp/paths.py", "from optpair.pairs import OptimalPairs"),
        ("gp/paths.py", "from ..pairs import OptimalPairs"),
        ("gp/paths.py", "from optpair.gp.likelihood import Data"),
        ("gp/kernels.py", "from optpair.gp import posterior"),
        ("gp/kernels.py", "from . import posterior"),
        ("gp/__init__.py", "from optpair.maximize import screen"),
        ("acquisition/jes.py", "from optpair.acquisition.ei import logei"),
        ("acquisition/normal.py", "from optpair.acquisition.truncation import exact_gain"),
        ("acquisition/jes.py", "def late():\n    from optpair.engine import Engine"),
        ("optimizer.py", "from optpair.cli import app"),
        ("study/worker.py", "import optpair.cli"),
        ("study/worker.py", "from optpair import demo"),
        ("cli.py", "from optpair import demo"),
        ("engine.py", "from optpair import Optimizer"),
        ("engine.py", "import optpair"),
        ("__init__.py", "from optpair import study"),
    ],
)
def test_a_violation_is_caught(path: str, source: str) -> None:
    assert len(violations(path, source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("engine.py", "from optpair.gp import paths as gp_paths\nimport optpair.cube"),
        ("gp/paths.py", "from optpair.gp import kernels\nfrom optpair.runtime import pytree"),
        ("acquisition/jes.py", "from optpair.acquisition.base import Acquisition"),
        ("acquisition/__init__.py", "from optpair.acquisition.jes import jes"),
        ("study/worker.py", "from optpair.study.config import load\nfrom optpair import Optimizer"),
        ("cli.py", "def run():\n    from optpair.study import commands"),
        ("space.py", "import numpy\nfrom optpairs import engine"),
    ],
)
def test_what_is_allowed_passes(path: str, source: str) -> None:
    assert violations(path, source) == []


@pytest.mark.parametrize("path", ["reports.py", "gp/laplace.py", "studies/files.py"])
def test_an_unknown_module_is_noticed(path: str) -> None:
    with pytest.raises(LookupError, match="place"):
        violations(path, "from optpair.gp import kernels")


def test_type_checkers_are_told_to_read_the_annotations() -> None:
    assert (ROOT / "py.typed").read_bytes() == b""
