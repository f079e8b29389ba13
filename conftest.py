"""Shapes and types in signatures are checked while tests run; JAX keeps what it compiles for them.

JAX's own cache knows a program by what it computes, so that an edit elsewhere costs no compiling;
the library's, by its source.
"""

import os
import tempfile
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

pytest_plugins = ["postgres_server"]

collect_ignore_glob = ["*conftest.py"]  # several of one name, and no doctest in any

_cache = Path(tempfile.gettempdir()) / f"optpair-tests-{os.getuid()}"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_cache))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# `space` and `settings` take what users write (an int for a float) and check it themselves.
install_import_hook(
    [
        "optpair.cube",
        "optpair.gp",
        "optpair.maximize",
        "optpair.pairs",
        "optpair.acquisition",
        "optpair.failures",
        "optpair.stages",
        "optpair.engine",
        "optpair.insight",
    ],
    "beartype.beartype",
)


@pytest.fixture(autouse=True)
def _nothing_ahead(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiling in the background: tests make many optimisers that ask for little."""
    from optpair import ahead  # after the hook

    if "compiles_ahead" not in request.keywords:
        monkeypatch.setattr(ahead, "compile_ahead", lambda work: None)
