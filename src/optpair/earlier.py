"""Earlier studies from wherever they are: optimisers, files, Optuna studies, tables."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from optpair.persistence import documents
from optpair.problem.outcomes import Direction
from optpair.problem.parameters import Categorical, Parameter
from optpair.problem.problem import VALUE, Problem
from optpair.trials import cells
from optpair.trials.earlier import EarlierRow, EarlierStudy
from optpair.trials.history import History
from optpair.trials.table import TableRow, bare_name, find, parse_csv, rows_of
from optpair.trials.told import check_reach
from optpair.trials.trial import Trial

Found = tuple[Mapping[str, Any], Mapping[str, tuple[float, float | None]]]
"""Parameters, and by outcome a value and the variance of its noise."""


@dataclass(frozen=True)
class Earlier:
    """An earlier study, with what its source does not say.

    Args:
        source: an optimiser, a file that `save` wrote, a CSV file, an Optuna study, or a table.
        name: what it is called in answers and reports.
        params: the values, at that time, of parameters that its trials do not have. Without it,
            numbers are taken to have been in the middle of their range, and all choices to be
            equally near.
        value: the column of the only outcome in a table, or the name of the outcome that counts
            where the source has several.
        direction: the direction of that column, if it differs from the present one.

    Examples:
        >>> Earlier([{"lr": 0.01, "loss": 0.3}], name="May", value="loss").name
        'May'
    """

    source: Any
    name: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    value: str | None = None
    direction: Direction | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.params, Mapping):
            raise TypeError(f"params must be a dict by name, not {self.params!r:.80}")
        for name in ("name", "value"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, str) and given):
                raise TypeError(f"{name} must be a text, not {given!r:.80}")
        if self.direction not in (None, *get_args(Direction)):
            raise ValueError(
                f"direction must be 'minimize' or 'maximize', not {self.direction!r:.80}"
            )


def list_earlier(given: object) -> list[Any]:
    """The given studies; TypeError if that is not a list, ValueError if a file cannot be read."""
    if isinstance(given, str | bytes | Path | Mapping) or not isinstance(given, Iterable):
        raise TypeError(
            "earlier must be a list of studies, like [optimizer, 'may.json', study], not "
            f"{given!r:.80}"
        )
    found = list(given)
    for i, study in enumerate(found):
        source = study.source if isinstance(study, Earlier) else study
        if isinstance(source, str | Path):
            try:
                Path(source).open("rb").close()
            except OSError as error:
                said = f"earlier[{i}]: {source} cannot be read: {error.strerror or error}"
                raise ValueError(said) from error
    return found


def read_earlier(given: object, problem: Problem) -> tuple[EarlierStudy, ...]:
    """Every study in a list, in the terms of a problem.

    Raises:
        TypeError: if it is not a list, or something in it is of another kind.
        ValueError: if a study shares no parameter or no outcome with the problem, or is damaged.
    """
    found: list[EarlierStudy] = []
    for i, source in enumerate(list_earlier(given)):
        try:
            study = _read(source, i, problem)
            study.check(problem)
        except (TypeError, ValueError) as error:
            raise type(error)(f"earlier[{i}]: {error}") from error
        found.append(study)
    names = [study.name for study in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"two earlier studies are called {name!r}; give names: Earlier(study, name='May')"
            )
    return tuple(found)


def _read(source: Any, place: int, problem: Problem) -> EarlierStudy:
    if isinstance(source, EarlierStudy):
        return source
    if not isinstance(source, Earlier):
        source = Earlier(source)
    _check_params(source.params, problem)
    kind = _kind(source.source, problem, source)
    name = source.name or kind.name or f"study {place + 1}"
    meant = _Meant.of(problem, kind.directions, source)
    rows = []
    for params, outcomes in kind.rows:
        known = {**source.params, **params}
        mine = {n: known[n] for n in problem.space if known.get(n) is not None}
        values, noises = meant.values(outcomes)
        for same in meant.same & values.keys():
            check_reach(same, values[same], problem.outcomes[same])
        if values:
            rows.append(EarlierRow(mine, values, noises))
    return EarlierStudy(name, tuple(rows))


def _check_params(given: Mapping[str, Any], problem: Problem) -> None:
    """Raise where what a parameter is said to have been has no place in the space."""
    space = problem.space
    for name, value in given.items():
        if name not in space:
            raise ValueError(
                f"params has {name!r}, which is no parameter of the space; it has "
                f"{', '.join(map(repr, space))}"
            )
        if value is not None:
            try:
                space.place({name: value})
            except (TypeError, ValueError) as error:
                raise type(error)(f"params: {error}") from error


@dataclass(frozen=True)
class _Kind:
    """A source, read: what it calls itself, its outcomes' directions, and its rows."""

    name: str | None
    directions: Mapping[str, Direction | None]
    rows: Sequence[Found]


def _kind(source: Any, problem: Problem, said: Earlier) -> _Kind:
    source = getattr(source, "optimizer", source)  # of the result of a search
    if isinstance(source, str | Path):
        return _of_file(Path(source), problem, said)
    if isinstance(getattr(source, "problem", None), Problem) and hasattr(source, "trials"):
        return _of_trials(source.problem, source.trials)
    if hasattr(source, "directions") and hasattr(source, "get_trials"):
        return _of_optuna(source)
    if (
        hasattr(source, "to_dict")
        or isinstance(source, list | tuple)
        or hasattr(source, "to_dicts")
    ):
        return _of_rows(rows_of(source), problem, said)
    raise TypeError(
        "it must be an Optimizer, a file that save() wrote, a CSV file, an Optuna study or a list "
        f"of dicts, not {source!r:.80}"
    )


def _of_file(path: Path, problem: Problem, said: Earlier) -> _Kind:
    content = path.read_bytes()
    if path.suffix.lower() == ".csv":
        try:
            rows = parse_csv(content.decode("utf-8-sig"))
        except UnicodeError as error:
            raise ValueError(f"{path} is not in UTF-8: save it so") from error
        found = _of_rows(rows, problem, said)
        return _Kind(path.stem, found.directions, found.rows)
    document = documents.loads(content, path)
    with documents.blame(path):
        history = History.from_json(document)
    found = _of_trials(history.problem, tuple(history))
    return _Kind(path.stem, found.directions, found.rows)


def _of_trials(problem: Problem, trials: Sequence[Trial]) -> _Kind:
    directions = {n: getattr(o, "direction", None) for n, o in problem.outcomes.items()}
    rows: list[Found] = []
    for trial in trials:
        outcomes = {
            name: (found.value, found.noise_var and found.noise_var / len(found.values))
            for name, found in trial.outcomes.items()
        }
        rows.append((trial.actual, outcomes))
    return _Kind(None, directions, rows)


def _of_optuna(study: Any) -> _Kind:
    directions: list[Direction] = [
        "maximize" if own.name == "MAXIMIZE" else "minimize" for own in study.directions
    ]
    given = getattr(study, "metric_names", None)
    names = list(given) if given else [VALUE]
    if len(names) != len(directions):
        names = [str(i) for i in range(len(directions))]
    rows: list[Found] = []
    for trial in study.get_trials(deepcopy=False):
        if trial.state.name == "COMPLETE":
            values = {name: (v, None) for name, v in zip(names, trial.values, strict=True)}
            rows.append((trial.params, values))
    return _Kind(study.study_name, dict(zip(names, directions, strict=True)), rows)


def _of_rows(rows: Sequence[TableRow], problem: Problem, said: Earlier) -> _Kind:
    names = [said.value] if said.value else list(problem.names)
    columns = list(dict.fromkeys(name for row in rows for name in row.cells))
    params = {
        name: find(name, columns, f"parameter {name!r}", needed=False) for name in problem.space
    }
    values = {name: find(name, columns, f"outcome {name!r}", needed=False) for name in names}
    for name, column in params.items():
        if not column:
            _check_not_meant(name, columns, {*params.values(), *values.values()})
    if rows and not any(values.values()):
        raise ValueError(
            f"it has no column {' or '.join(map(repr, names))} with the values; there are "
            f"{', '.join(map(repr, columns))}; rename that column, or name it: "
            f"Earlier(…, value='yield')"
        )
    return _Kind(None, dict.fromkeys(names), list(_cells(rows, params, values, problem)))


def _check_not_meant(name: str, columns: Sequence[str], used: Collection[str]) -> None:
    """Refuse a parameter without a column where one differs only in upper and lower case."""
    for column in columns:
        if column not in used and bare_name(column).lower() == bare_name(name).lower():
            raise ValueError(f"it has no column {name!r}: did you mean {column!r}? Rename it")


def _cells(
    rows: Sequence[TableRow], params: Mapping[str, str], values: Mapping[str, str], problem: Problem
) -> Iterator[Found]:
    """Parameters and outcomes of each row, from their columns; "" where there is none."""
    for row in rows:
        bare = {name: cells.bare(cell) for name, cell in row.cells.items()}
        try:
            outcomes = {
                name: (_mean(cells.numbers(column, bare[column])), None)
                for name, column in values.items()
                if bare.get(column) is not None
            }
            known = {
                name: _value(column, problem.space[name], bare[column])
                for name, column in params.items()
                if bare.get(column) is not None
            }
        except (TypeError, ValueError) as error:
            raise type(error)(f"{row.where}: {error}") from error
        yield known, outcomes


def _mean(given: float | Sequence[float]) -> float:
    """A number, or the mean of what was measured several times."""
    several = list(given) if isinstance(given, Sequence) else [given]
    return math.fsum(number / len(several) for number in several)


def _value(name: str, parameter: Parameter, cell: Any) -> Any:
    """What a cell holds; a choice of that time that is none now stays as it is."""
    try:
        return cells.value_of(name, parameter, cell)
    except ValueError:
        if isinstance(parameter, Categorical):
            return str(cell)
        raise


@dataclass(frozen=True)
class _Meant:
    """Which outcomes of a source are which of a problem, and which way round."""

    pairs: Mapping[str, tuple[str, float]]
    """By the source's name: the problem's, and −1 where what is good is the other way."""

    @classmethod
    def of(
        cls, problem: Problem, directions: Mapping[str, Direction | None], said: Earlier
    ) -> _Meant:
        """Outcomes of one name are the same quantity; the only objectives of both are, too.

        The only objectives need not be the same quantity: what was good then is good now.
        """
        own, objectives = problem.outcomes, list(problem.objectives)
        if said.value is not None and said.value not in directions:
            raise ValueError(
                f"value={said.value!r} is none of its outcomes, {', '.join(map(repr, directions))}"
            )
        theirs = [said.value] if said.value else [n for n, d in directions.items() if d is not None]
        pairs = {n: (n, 1.0) for n in directions if n in own and n != VALUE and not said.value}
        if not pairs and len(theirs) <= 1 and len(objectives) == 1:
            (mine,) = objectives
            name = next(iter(theirs), mine if mine in directions else next(iter(directions)))
            direction = said.direction or directions[name]
            other = direction is not None and direction != problem.objective.direction
            pairs = {name: (mine, -1.0 if other else 1.0)}
        if not pairs:
            raise ValueError(
                f"its outcomes are {', '.join(map(repr, directions))}, and here "
                f"{', '.join(map(repr, own))}: none is called alike; say which one is meant, "
                f"Earlier(study, value={next(iter(directions))!r})"
            )
        return cls(pairs)

    @property
    def same(self) -> set[str]:
        """The outcomes that are the same quantity here and there: those of one name."""
        return {name for name, (mine, _) in self.pairs.items() if name == mine != VALUE}

    def values(
        self, outcomes: Mapping[str, tuple[float, float | None]]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Values and noise variances by the problem's names."""
        values, noises = dict[str, float](), dict[str, float]()
        for name, (mine, sign) in self.pairs.items():
            if name in outcomes:
                value, noise = outcomes[name]
                values[mine] = sign * value
                if noise is not None:
                    noises[mine] = noise
        return values, noises
