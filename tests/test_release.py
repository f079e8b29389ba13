"""Releases: the distributions, the citation, the changelog, the folder for OptunaHub."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HUB = ROOT / "optunahub" / "package" / "samplers" / "joint_entropy_search"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that was built from the sdist, and the sdist, as a package index gets them."""
    pytest.importorskip("build")
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return out


def test_the_wheel_has_every_module_and_what_stands_beside_them(built: Path) -> None:
    (wheel,) = built.glob("optpair-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    wanted = {".py", ".css", ".js", ".typed"}
    files = [p for p in source.rglob("*") if p.suffix in wanted or p.name == "py.typed"]
    assert len(files) > 100
    assert {p.relative_to(source).as_posix() for p in files} <= names
    assert not [name for name in names if name.startswith(("tests/", "bench/"))]


def test_the_wheel_works_without_the_clone(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("optpair-*.whl")
    code = "import optpair.report.page as page; print(page.__file__, page.asset('page.css')[:5])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(wheel), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.startswith(str(wheel))
    assert done.stdout.endswith(":root\n")


def test_the_sdist_has_what_a_packager_needs(built: Path) -> None:
    (sdist,) = built.glob("optpair-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml"} <= names
    assert {"CHANGELOG.md", "CITATION.cff", "SECURITY.md"} <= names
    assert "tests/test_release.py" in names


def test_one_version_everywhere() -> None:
    version = PROJECT["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## \[(.+?)\]", changelog, re.M)
    assert first is not None
    assert first[1] == version


def test_the_folder_for_optunahub_is_in_its_form() -> None:
    text = (HUB / "README.md").read_text(encoding="utf-8")
    head = text.split("---\n")[1]
    keys = {line.partition(":")[0] for line in head.splitlines()}
    assert keys == {"author", "title", "description", "tags", "optuna_versions", "license"}
    for title in ("Abstract", "APIs", "Installation", "Example"):
        assert f"\n## {title}\n" in text
    for name in ("__init__.py", "example.py"):
        ast.parse((HUB / name).read_text(encoding="utf-8"))
    assert (HUB / "LICENSE").read_text(encoding="utf-8") == (ROOT / "LICENSE").read_text(
        encoding="utf-8"
    )


def test_the_folder_for_optunahub_has_the_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    from optpair.integrations.optuna import JESSampler

    monkeypatch.syspath_prepend(str(HUB.parent))
    import joint_entropy_search  # type: ignore[import-not-found]

    assert joint_entropy_search.JESSampler is JESSampler


def test_versions_of_the_site_are_listed_the_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mkdocs")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "hooks"))
    import versions  # type: ignore[import-not-found]

    for name in ("0.9.0", "0.10.0", "0.2", "assets"):
        (tmp_path / name).mkdir()
    assert versions.listed(tmp_path) == ["0.10.0", "0.9.0", "0.2"]
    entries = json.loads((tmp_path / "versions.json").read_text(encoding="utf-8"))
    assert [entry["aliases"] for entry in entries] == [["latest"], [], []]
    assert 'href="0.10.0/index.html"' in (tmp_path / "index.html").read_text(encoding="utf-8")
