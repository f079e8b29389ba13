"""Samplers that a study file names: acquisition functions of the engine, and its controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from optpair.studies.config import StudyError, StudyFile, load

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from optpair.earlier import Earlier
    from optpair.integrations.optuna import JESSampler


def make_sampler(
    file: StudyFile,
    acquisition: str | None = None,
    continuable: Callable[[FrozenTrial], bool] | None = None,
) -> JESSampler:
    """The sampler with the file's seed, space and settings; the file's own unless another.

    `continuable` says which trials can be taken up again: see `checkpoints`.
    """
    from optpair.engine.settings import Settings
    from optpair.integrations.optuna import JESSampler

    unknown = [name for name in file.settings if name not in Settings.__dataclass_fields__]
    if unknown:
        raise StudyError(
            f"{file.path.name}: [settings] has an unknown key {unknown[0]!r}. "
            f"It may have {', '.join(Settings.__dataclass_fields__)}"
        )
    try:
        sampler = JESSampler(
            seed=file.seed,
            search_space=file.space.searched,
            where=file.space.where,
            noise=file.noise,
            acquisition=acquisition or file.sampler,
            settings=Settings(**file.settings),
            earlier=[_earlier(file, name) for name in file.earlier],
            continuable=continuable,
        )
        sampler.check_outcomes(file.outcomes)
        return sampler
    except (TypeError, ValueError) as error:
        raise StudyError(f"{file.path.name}: {error}") from error


def _earlier(file: StudyFile, name: str) -> Earlier:
    """An earlier study: a study file, what `Optimizer.save` wrote, or a CSV file."""
    from optpair.earlier import Earlier
    from optpair.studies.storage import open_study

    path = file.folder / name
    if not path.is_file():
        raise ValueError(f"[study] earlier has {name!r}, and there is no such file: {path}")
    if path.resolve() == file.path.resolve():
        raise ValueError(f"[study] earlier has {name!r}, which is this study itself: leave it out")
    source = open_study(load(path), make=False) if path.suffix == ".toml" else path
    return Earlier(source, name=path.stem)
