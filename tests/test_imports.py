"""Imports point only along the data flow: a layer imports layers to its left."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import optpair
from shell_cases import python

ROOT = Path(optpair.__file__).parent

FLOW: tuple[frozenset[str], ...] = tuple(
    frozenset(layer.split())
    for layer in (
        "runtime",
        "problem",
        "trials",
        "gp",
        "cube",
        "optima",
        "acquisition",
        "engine",
        "persistence",
        "report",
        "results",
        "earlier tables",
        "optimizer",
        "search",
        "demo integrations",
        "studies",
        "watch",
        "cli",
        "__main__",
    )
)
"""Left to right; modules of one layer do not import each other."""

LAYER = {name: place for place, names in enumerate(FLOW) for name in names}

LAZY = {"demo", "studies", "watch"}
"""What only functions of the command line may import, so that it starts fast."""

SHELLS = {"demo", "integrations", "studies", "watch", "cli"}
"""What may use the public names."""

INSIDE: dict[str, tuple[str, ...]] = {
    "runtime": ("locks", "shapes", "stderr", "streams", "threads"),
    "results": ("best", "front"),
    "problem": (
        "defaults",
        "layout",
        "parameters",
        "conditions",
        "columns",
        "outcomes",
        "limits",
        "linear",
        "rounding",
        "shelf",
        "space",
        "beliefs",
        "problem",
        "stop",
    ),
    "trials": (
        "estimate",
        "transform",
        "usual",
        "numbers",
        "trial",
        "data",
        "notes",
        "told",
        "looks",
        "records",
        "history",
        "earlier",
        "cells",
        "table",
    ),
    "engine": (
        "settings",
        "budget",
        "doubt",
        "warps",
        "effects",
        "hypervolume",
        "model",
        "beliefs",
        "earlier",
        "worth",
        "goals",
        "plate",
        "engine",
        "repeats",
        "fitting",
        "candidates",
        "sampling",
        "optimum",
        "query",
        "focus",
        "design",
        "step",
        "going_on",
        "fronts",
        "gaps",
        "forecast",
        "answers",
        "session",
    ),
    "persistence": ("files", "documents"),
    "search": ("ends", "progress", "checkpoints", "evaluations", "search"),
    "watch": ("sources", "stored", "targets", "boards", "page", "server"),
}
"""Modules of a layer, left to right, where there is such an order."""

SHARED = {"acquisition": {"base", "beside", "chance", "special", "weights"}}
"""What one idea per file may import of its own layer; the registry and `own` import all."""

COMBINED = {
    "aegis": {"mean", "ts"},
    "cei": {"ei"},
    "cmes": {"joint"},
    "ehvi": {"cei"},
    "ids": {"jes", "mean"},
    "joint_looks": {"joint"},
    "looks": {"jes", "joint", "joint_looks"},
    "mfkg": {"kg"},
    "jes": {"joint"},
    "opes": {"jes"},
}
"""Acquisition functions that are made of others, and of which."""

PUBLIC = "(public names)"
"""What `import optpair` stands for."""


def place(name: str) -> int:
    """Where in the flow a layer is."""
    if name not in LAYER:
        raise LookupError(f"optpair.{name} has no place yet; give it one in {__file__}")
    return LAYER[name]


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


def inside(own: str, module: str, target: str) -> bool:
    """Whether a module may import another of its own layer."""
    if module in ("__init__", target):
        return True
    if own in INSIDE:
        order = INSIDE[own]
        for name in (module, target):
            if name not in order:
                raise LookupError(f"optpair.{own}.{name} has no place; give it one in {__file__}")
        return order.index(target) < order.index(module)
    if own in SHARED and module not in ("registry", "own", "base", "weights", "special"):
        return target in SHARED[own] | COMBINED.get(module, set())
    return True


def violations(path: str, source: str) -> list[str]:
    """What a file, at its path under the package, imports and should not."""
    parts = Path(path).with_suffix("").parts
    if parts == ("__init__",):
        return [f"{path} imports {name}" for name, top in imported(source, "optpair") if top]
    own, folder = parts[0], parts if parts[-1] == "__init__" else parts[:-1]
    here, package = place(own), ".".join(["optpair", *(p for p in folder if p != "__init__")])
    bad = []
    for name, top in imported(source, package):
        first, *rest = name.split(".")
        if first == own:
            allowed = not rest or len(parts) == 1 or inside(own, parts[1], rest[0])
        elif first in LAYER:
            allowed = LAYER[first] < here
            allowed = allowed and not (own == "cli" and first in LAZY and top)
        else:  # a name of optpair itself
            allowed = own in SHELLS
        if not allowed:
            bad.append(f"{path} imports {name}")
    return bad


FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES)
def test_imports_point_along_the_flow(path: str) -> None:
    assert violations(path, (ROOT / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", FILES)
def test_nothing_imports_jax(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    names = [alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names]
    names += [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    assert [name for name in names if name.split(".")[0] in ("jax", "jaxlib")] == []


def test_the_whole_package_is_looked_at() -> None:
    assert {"gp/posterior.py", "acquisition/jes.py", "engine/step.py", "__init__.py"} <= set(FILES)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("runtime/streams.py", "from optpair.runtime.threads import engine_work"),
        ("problem/space.py", "from optpair.engine.engine import Engine"),
        ("problem/space.py", "from optpair import trials"),
        ("problem/space.py", "import optpair.gp.kernels"),
        ("problem/space.py", "from optpair.problem.problem import Problem"),
        ("problem/layout.py", "from .space import Space"),
        ("trials/data.py", "from optpair.trials.history import History"),
        ("trials/data.py", "from ..gp import priors"),
        ("gp/paths.py", "from optpair.cube.cube import Cube"),
        ("gp/__init__.py", "from optpair.cube.climb import maximise"),
        ("cube/cube.py", "from optpair.optima.base import Optima"),
        ("acquisition/jes.py", "from optpair.acquisition.ei import logei"),
        ("acquisition/jes.py", "def late():\n    from optpair.engine.engine import Engine"),
        ("engine/settings.py", "from optpair.engine.session import Session"),
        ("engine/step.py", "from optpair import Optimizer"),
        ("engine/step.py", "import optpair"),
        ("engine/step.py", "from optpair.persistence import files"),
        ("report/page.py", "from optpair.optimizer import Optimizer"),
        ("optimizer.py", "from optpair.search import minimize"),
        ("optimizer.py", "from optpair.cli import app"),
        ("integrations/optuna.py", "from optpair.studies import worker"),
        ("studies/worker.py", "import optpair.cli"),
        ("cli.py", "from optpair import demo"),
        ("__init__.py", "from optpair.optimizer import Optimizer"),
    ],
)
def test_a_violation_is_caught(path: str, source: str) -> None:
    assert len(violations(path, source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("engine/step.py", "from optpair.gp import paths as gp_paths\nimport optpair.cube"),
        (
            "gp/paths.py",
            "from optpair.gp import kernels\nfrom optpair.runtime.streams import Stream",
        ),
        ("cube/cube.py", "from optpair.problem.layout import Layout"),
        ("acquisition/jes.py", "from optpair.acquisition.base import Acquisition"),
        ("acquisition/__init__.py", "from optpair.acquisition.jes import jes"),
        (
            "studies/worker.py",
            "from optpair.studies.config import load\nfrom optpair import Optimizer",
        ),
        ("cli.py", "def run():\n    from optpair.studies import commands"),
        ("problem/space.py", "import numpy\nfrom optpairs import engine"),
    ],
)
def test_what_is_allowed_passes(path: str, source: str) -> None:
    assert violations(path, source) == []


@pytest.mark.parametrize("path", ["reports.py", "oddments/files.py", "engine/effort.py"])
def test_an_unknown_module_is_noticed(path: str) -> None:
    with pytest.raises(LookupError, match="place"):
        violations(path, "from optpair.gp import kernels\nfrom optpair.engine import step")


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import optpair", {"numpy", "scipy", "jax", "rich", "optpair.engine"}),
        (
            "import optpair.problem.space, optpair.trials.history",
            {"scipy", "jax", "optpair.engine", "optpair.gp", "threadpoolctl"},
        ),
        ("from optpair import Float, Space, Trial", {"scipy", "jax", "optpair.gp"}),
        (
            "from optpair import Optimizer",
            {"jax", "optuna", "sklearn", "matplotlib", "typer", "scipy.spatial", "scipy.optimize"},
        ),
    ],
)
def test_imports_are_light(statement: str, absent: set[str]) -> None:
    done = python(f"import sys\n{statement}\nprint(*sys.modules)")
    assert done.stderr == ""
    assert absent & set(done.stdout.split()) == set()


def test_type_checkers_are_told_to_read_the_annotations() -> None:
    assert (ROOT / "py.typed").read_bytes() == b""


def test_a_word_of_the_models_stands_for_one_thing() -> None:
    words = re.compile(r"^class (State|Model|Row|Plan|Seen|Moved)\b", re.M)
    found = [w for path in ROOT.rglob("*.py") for w in words.findall(path.read_text("utf-8"))]
    assert sorted(found) == sorted(set(found))
