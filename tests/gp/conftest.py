"""One thread of BLAS, as where the engine runs: more of them spin on small matrices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from optpair.runtime.threads import few_threads


@pytest.fixture(autouse=True, scope="module")
def _few_threads() -> Iterator[None]:
    with few_threads():
        yield
