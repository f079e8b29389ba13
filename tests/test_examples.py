"""The examples run as they stand, in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(name: str, folder: Path, *args: str) -> str:
    """What an example prints; whatever it writes down, it writes into the folder."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *args],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "HOME": str(folder),
            "RAY_USAGE_STATS_ENABLED": "0",
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_scikit_learn(tmp_path: Path) -> None:
    said = run("sklearn_search.py", tmp_path, "--evaluations", "3")
    assert re.search(r"recommended +svc__C = .*, svc__gamma = ", said)
    assert re.search(r"accuracy on new data: 0\.\d", said)


def test_dask(tmp_path: Path) -> None:
    pytest.importorskip("optuna_integration", reason="pip install 'optpair[dask]'")
    pytest.importorskip("distributed", reason="pip install 'optpair[dask]'")
    said = run("dask_optuna.py", tmp_path, "--trials", "3", "--workers", "2")
    assert "3 of 3 trials gave a value" in said
    assert re.search(r"recommended +lr = .*, act = '", said)


@pytest.mark.ray
def test_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'optpair[ray]'")
    said = run("ray_tune.py", tmp_path, "--trials", "3", "--at-once", "2")
    assert "3 of 3 trials gave a value" in said
    assert re.search(r"recommended +lr = .*, act = '", said)
