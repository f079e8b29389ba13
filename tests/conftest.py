"""What every test has."""

from __future__ import annotations

import pytest

from optpair import ahead


@pytest.fixture(autouse=True)
def _nothing_ahead(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiling in the background: tests make many optimisers that ask for little."""
    if "compiles_ahead" not in request.keywords:
        monkeypatch.setattr(ahead, "compile_ahead", lambda work: None)
