"""The examples run as they stand, in processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(name: str, folder: Path, *args: str, typed: str | None = None) -> str:
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
        input=typed,
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


def test_report(tmp_path: Path) -> None:
    said = run("report.py", tmp_path, "--trials", "9")
    assert re.search(r"recommended +learning_rate = ", said)
    assert (tmp_path / "report.html").exists()


def test_the_gallery_shows_every_example() -> None:
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\]\(gallery/(\w+)\.md\)", gallery))
    assert shown == {path.stem for path in (ROOT / "examples").glob("*.py")}
    for picture in re.findall(r"\]\((\S+\.png)\)", gallery):
        for own in (picture, picture.replace(".png", "-phone.png")):  # small, it cannot be read
            assert (ROOT / "docs" / own).exists(), own


def test_epochs(tmp_path: Path) -> None:
    said = run("epochs.py", tmp_path, "--budget", "1")
    assert re.search(r"recommended +rate = .*, epochs = 27\n", said)
    assert re.search(r"\d+ runs of \d+ epochs in all", said)


def test_mesh(tmp_path: Path) -> None:
    said = run("mesh.py", tmp_path, "--budget", "2")
    assert re.search(r"recommended +x = .*, cells = 64\n", said)
    assert re.search(r"\d+ solutions for the cost of \d\.\d fine ones", said)


def test_lab(tmp_path: Path) -> None:
    said = run("lab.py", tmp_path, "--experiments", "4")
    told = re.search(r"^last-year.csv: (\d+) told, (\d) failed, 1 without a value skipped", said)
    assert told
    first = sum(map(int, told.groups()))
    assert first == 19
    assert "kept as notes: operator" in said
    assert re.findall(r"^experiment (\d+):", said, re.M) == [str(first + i) for i in range(8)]
    assert "from 2 measurements" in said
    assert said.count("95 % interval") == 2  # a day each
    assert (tmp_path / "lab.json").exists()


def test_lab_goes_on_with_the_experiment_that_is_out(tmp_path: Path) -> None:
    """Someone leaves in the middle of an experiment, and types its yields in the next day."""
    evening = run("lab.py", tmp_path, "--by-hand", "--experiments", "1", typed="")
    morning = run("lab.py", tmp_path, "--by-hand", "--experiments", "2", typed="61 63\n\n")
    assert evening.splitlines()[0] == morning.splitlines()[0]
    assert "62.0 % from 2 measurements" in morning
    assert "failed" in morning


def test_constraint(tmp_path: Path) -> None:
    said = run("constraint.py", tmp_path, "--trials", "6")
    assert re.search(r"recommended +layers = \d+, width = \d+, dropout = ", said)
    assert re.search(r"predicted +latency +.*\(must be at most 20\)", said)
    assert re.search(r"chance that it is fast enough: [01]\.\d", said)


def test_front(tmp_path: Path) -> None:
    said = run("front.py", tmp_path, "--trials", "6")
    assert re.search(
        r"^ *yield \(maximize\) +cost \(minimize\) +catalyst +temperature$", said, re.M
    )
    assert "hypervolume" in said
    assert said.count("recommended    catalyst = ") == 2


def test_mixture(tmp_path: Path) -> None:
    said = run("mixture.py", tmp_path, "--trials", "7")
    assert re.search(r"recommended +water = ", said)
    assert float(said.split()[-1]) < 1e-15


def test_conditional(tmp_path: Path) -> None:
    said = run("conditional.py", tmp_path, "--trials", "7")
    assert re.search(r"recommended +model = '(svm|forest)'", said)


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


def test_shelf(tmp_path: Path) -> None:
    said = run("shelf.py", tmp_path, "--trials", "8")
    assert re.search(r"recommended +polarity = .*, boiling = .*, donor = ", said)
    assert re.search(r"^S\d{4} is the best with a chance of \d+%$", said, re.M)


def test_a_context(tmp_path: Path) -> None:
    said = run("two_sites.py", tmp_path, "--trials", "9")
    assert re.search(r"Lyon\nrecommended .*site = 'Lyon'\n", said)
    assert re.search(r"Turin\nrecommended .*site = 'Turin'\n", said)


def test_an_earlier_study(tmp_path: Path) -> None:
    said = run("last_month.py", tmp_path, "--trials", "4")
    assert re.search(r"alone\n +recommended", said)
    assert re.search(r"borrowed from  May \(explains \d+ %\)", said)
