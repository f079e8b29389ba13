"""What every test has."""

from __future__ import annotations

import pytest

from optpair import optimizer


@pytest.fixture(autouse=True)
def _nothing_ahead(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiling in the background: tests make many optimisers that ask for little."""
    if "compiles_ahead" not in request.keywords:
        monkeypatch.setattr(optimizer, "compile_ahead", lambda work: None)
