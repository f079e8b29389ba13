"""A real browser for the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from report_cases import Browse, Seen

REQUIRED = "OPTPAIR_REQUIRE_CHROMIUM"
"""Where this is set, as in CI, a missing browser is a failure and not a skip."""

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-extensions",
    "--hide-scrollbars",
    "--no-first-run",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
    "--proxy-server=127.0.0.1:9",  # the page needs no network, and nothing else may have it
)


@pytest.fixture(scope="session")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Browse:
    """Open a page at some width; `shot` names a file for its picture."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, and there is no Chromium")
        pytest.skip("no Chromium: apt-get install chromium")
    profile = tmp_path_factory.mktemp("chromium")

    def look(page: Path, width: int = 1200, shot: Path | None = None) -> Seen:
        action = "--dump-dom" if shot is None else f"--screenshot={shot}"
        size = f"--window-size={width},1600"
        ran = subprocess.run(
            [program, *FLAGS, f"--user-data-dir={profile}", size, action, page.as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return Seen(ran.stdout, [line for line in ran.stderr.splitlines() if "CONSOLE" in line])

    return look
