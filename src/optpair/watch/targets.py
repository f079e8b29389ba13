"""Targets of `optpair watch` and `optpair report`: the searches that arguments name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optpair.watch.sources import Saved, Source

SQLITE = b"SQLite format 3\0"


def sources(words: Sequence[str], names: Sequence[str] = ()) -> list[Source]:
    """The searches that some arguments name.

    Args:
        words: study files, storages (URLs, or files of SQLite), and files of saved runs.
        names: of a storage's studies; all of them by default.

    Returns:
        One source per search, in the order of the words.

    Raises:
        ValueError: if a word names no search, or a storage has no study of that name.
    """
    found: list[Source] = []
    for word in words:
        found += _sources(word, names)
    if names and all("://" not in word and not _is_sqlite(Path(word)) for word in words):
        raise ValueError("--study goes with a storage, like sqlite:///study.db")
    return found


def is_study_file(word: str) -> bool:
    """Whether a word names a study file."""
    return "://" not in word and Path(word).suffix == ".toml"


def _sources(word: str, names: Sequence[str]) -> list[Source]:
    path = Path(word)
    if is_study_file(word):
        from optpair.studies import config
        from optpair.watch.stored import Stored

        file = config.load(path)
        return [Stored(file.storage, file.name, file)]
    if "://" in word or _is_sqlite(path):
        from optpair.studies.storage import study_names, without_secrets
        from optpair.watch.stored import Stored

        url = word if "://" in word else f"sqlite:///{path.resolve()}"
        there = study_names(url)
        if not there:
            raise ValueError(f"{without_secrets(url)} has no studies")
        unknown = [name for name in names if name not in there]
        if unknown:
            raise ValueError(
                f"there is no study {unknown[0]!r} in {without_secrets(url)}; it has "
                f"{', '.join(map(repr, there))}"
            )
        return [Stored(url, name) for name in names or there]
    if not path.is_file():
        raise ValueError(
            f"there is no file {word}; give a study file (.toml), a storage's URL like "
            "sqlite:///study.db, or the file of a saved run"
        )
    return [Saved(path)]


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False
