"""Experiments by name, the paper's and some of our own: tasks, methods, budgets and settings.

Every method of a repetition begins with the same D + 1 uniform points and meets the same noise;
budgets count the evaluations after them. Each repetition of a GP task draws a new function.

In `answers`, `answers-tuning`, `constrained`, `fronts` and those of other spaces (`beliefs`,
`shelf`, `conditional`, `mixtures`, `plates`) each method has a start of its own, as its users have:
budgets count all evaluations, and recommendations are asked for after 2, 5, 10 and 20 a dimension,
or when the cell says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

import numpy as np

from optpair_bench import tasks
from optpair_bench.methods import Model, Setup, setup
from optpair_bench.tasks import joint, packages, pipelines, related, spaces, tables
from optpair_bench.tasks.functions import SYNTHETIC
from optpair_bench.tasks.spaces import SpaceTask

Kind = Literal["inference", "simple", "observed"]
"""Regret at the recommendation, at the best queried point; and the best observed value itself."""

READ_AT = (2, 5, 10, 20)
"""Evaluations a dimension after which `answers` asks for a recommendation."""
CHECKPOINTS = 25  # in a run, beside the one before the first evaluation
KNOWN = {"kernel": "rbf", "pairs": 100, "exploit": 0.0, "features": 1024}
MARGINAL = {"kernel": "rbf", "sets": 20, "pairs": 5, "exploit": 0.1}
FOUR = ("jes", "mes", "pes", "ei")
NOISE_LEVELS = (1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0, 4.0, 10.0, 20.0)
GP_DIMS = (2, 4, 6, 12)


@dataclass(frozen=True)
class Cell:
    """One task of an experiment: its name, the budget, and how often hyperparameters change."""

    task: str
    evaluations: int
    paper_repetitions: int
    refresh_every: int = 1
    read: tuple[int, ...] = ()
    """The evaluations after which a recommendation is asked for, where they are not the usual."""


@dataclass(frozen=True)
class Experiment:
    """What is run, and how it is shown.

    `repetitions` is the number that two cores can bear; each cell has the paper's.
    """

    name: str
    title: str
    paper: str
    """Where it is in the paper; empty where it is not. `claims.py` has what is said there."""
    cells: tuple[Cell, ...]
    methods: tuple[str, ...]
    model: Model
    settings: Mapping[str, Any]
    repetitions: int
    kinds: tuple[Kind, ...] = ("inference", "simple")
    errors: int = 2
    """Standard errors in the band around a mean."""
    target: float = 0.1
    """The regret that evaluations are counted to."""
    notes: tuple[str, ...] = field(default=())
    """What differs from the paper."""
    keep_queries: bool = False
    own_start: bool = False
    """Whether each method begins by itself; otherwise all begin with the same D + 1 points."""

    def cell(self, task: str) -> Cell:
        """The cell of a task, or an error that lists them."""
        for cell in self.cells:
            if cell.task == task:
                return cell
        names = ", ".join(cell.task for cell in self.cells)
        raise ValueError(f"the tasks of {self.name} are {names}, not {task!r}")

    def select(self, names: Sequence[str] = (), dims: Sequence[int] = ()) -> tuple[Cell, ...]:
        """Its cells, or those of the given names and dimensions."""
        chosen = tuple(self.cell(name) for name in names) or self.cells
        found = tuple(c for c in chosen if not dims or dimensions(c.task) in dims)
        if not found:
            have = sorted({dimensions(cell.task) for cell in chosen})
            raise ValueError(f"{self.name} has tasks of {have} dimensions, none of {list(dims)}")
        return found

    def setup(
        self, method: str, task: tasks.Task | joint.JointTask | SpaceTask, cell: Cell
    ) -> Setup:
        """A method at the experiment's settings; γ is that of JES, others have none."""
        if self.own_start:
            return setup(method, task, self.model, self.settings, own_start=True)
        settings = {**self.settings, "refresh_every": cell.refresh_every}
        if self.settings and not method.startswith("jes"):
            settings["exploit"] = 0.0
        return setup(method, task, self.model, settings)

    def initial(self, dimensions: int) -> int:
        """The number of points that every method is given to begin with."""
        return 0 if self.own_start else dimensions + 1

    def schedule(self, evaluations: int, dimensions: int, read: Sequence[int] = ()) -> list[int]:
        """The evaluations after which a recommendation is asked for."""
        if not self.own_start:
            return schedule(evaluations)
        usual = [count * dimensions for count in READ_AT]
        return [*(count for count in read or usual if count < evaluations), evaluations]


def dimensions(task: str) -> int:
    """The number of inputs of a task, without making it.

    >>> dimensions("gp12@4"), dimensions("branin"), dimensions("hpo-car")
    (12, 2, 4)
    """
    plain = task.partition("@")[0]
    if spaces.known(plain):
        return spaces.dimensions(plain)
    if plain in SYNTHETIC:
        return len(SYNTHETIC[plain].bounds)
    if plain in joint.REGISTRY:
        return len(joint.REGISTRY[plain].bounds)
    if plain in packages.ENTRIES:
        return packages.ENTRIES[plain].dimensions
    return int(plain[2:]) if plain.startswith("gp") else 4


def schedule(evaluations: int) -> list[int]:
    """The evaluations after which a recommendation is asked for: it costs as much as an ask.

    >>> schedule(100)[:4], schedule(3)
    ([0, 4, 8, 12], [0, 1, 2, 3])
    """
    even = np.linspace(0, evaluations, CHECKPOINTS + 1).round()
    return [int(count) for count in np.unique(even)]


def _gp(
    suffix: str, budget: int, repetitions: Sequence[int], dims: Sequence[int]
) -> tuple[Cell, ...]:
    return tuple(
        Cell(f"gp{d}{suffix}", budget * d, n) for d, n in zip(dims, repetitions, strict=True)
    )


def _with(method: str, setting: str, values: Sequence[float]) -> tuple[str, ...]:
    return tuple(f"{method}:{setting}={value:g}" for value in values)


def users_budget(dimensions: int) -> int:
    """All evaluations of a search that its user can bear.

    >>> [users_budget(d) for d in (2, 5, 8, 10, 20, 50)]
    [40, 100, 80, 100, 100, 250]
    """
    each = 20 if dimensions <= 5 else 10 if dimensions <= 10 else 5
    return each * dimensions


def _answers(*, tuning: bool) -> tuple[Cell, ...]:
    return tuple(
        Cell(f"{name}@{noise}%", users_budget(packages.ENTRIES[name].dimensions), 0)
        for name in packages.names(tuning=tuning)
        for noise in packages.NOISES
    )


def _users(task: str) -> Cell:
    return Cell(task, 20 * dimensions(task), 0)


SYNTHETIC_CELLS = (
    Cell("branin@0.01", 100, 100, refresh_every=5),
    Cell("hartmann3@0.01", 150, 100, refresh_every=10),
    Cell("hartmann6@0.01", 300, 100, refresh_every=10),
)
MES_NOTE = (
    "MES takes 16 stratified draws per set from its Gumbel distribution, which is a quadrature "
    "over one variable, where the paper takes 100 at random; none is below the best posterior mean "
    "and the noise's standard deviation, where its authors' code has the largest value and 0.1."
)
GP_NOTES = (
    "Every repetition draws a new function; the authors' code reuses ten.",
    MES_NOTE,
    "EI's incumbent is the best posterior mean; in the authors' code, the largest noisy value.",
)
MARGINAL_NOTES = (
    "Hyperparameters follow HMC chains that are moved at the paper's intervals (every 5 trials on "
    "Branin and the MLP tasks, every 10 on the others); kernel RBF, priors the library's.",
    "γ is that of JES; MES, PES and EI have none unless their name says so.",
    MES_NOTE,
)

ON_PAGE = (
    Experiment(
        "gp",
        "GP samples, hyperparameters known",
        "Fig. “GP prior samples”; App. “Regret measures”",
        _gp("", 50, (1000, 1000, 1000, 250), GP_DIMS),
        FOUR,
        "known",
        KNOWN,
        repetitions=50,
        notes=GP_NOTES,
    ),
    Experiment(
        "gp-noisy",
        "GP samples with much noise, σ² = 4",
        "Fig. “noisy GP sample tasks”",
        _gp("@4", 125, (100, 100), (2, 4)),
        FOUR,
        "known",
        KNOWN,
        repetitions=30,
        kinds=("inference",),
        target=1.0,
        notes=GP_NOTES,
    ),
    Experiment(
        "synthetic",
        "Branin and Hartmann functions, σ² = 0.01",
        "Fig. “Synthetic test functions”; App. “Regret measures”",
        SYNTHETIC_CELLS,
        FOUR,
        "marginal",
        MARGINAL,
        repetitions=25,
        kinds=("simple", "inference"),
        notes=(
            *MARGINAL_NOTES,
            "The paper's caption says σ² = 0.10, its table 0.01: 0.01 here.",
        ),
    ),
    Experiment(
        "mlp",
        "Networks of HPOBench's tables",
        "Fig. “MLP tasks”",
        tuple(Cell(f"hpo-{n}", 80, 100, refresh_every=5) for n in tables.DATASETS),
        FOUR,
        "marginal",
        MARGINAL,
        repetitions=20,
        kinds=("observed", "inference"),
        errors=1,
        target=0.01,
        notes=(
            *MARGINAL_NOTES,
            "Accuracy is balanced accuracy, from tables of ten levels per parameter, modelled "
            "as ordered integers; alpha goes to 1, not to 1e-3.",
            "The tables train on what they validate on, a known leak of the benchmark.",
            "One of five seeds is drawn at each evaluation, and the mean of the five is the "
            "noiseless value; the authors keep one seed per run, so that their objective is "
            "deterministic within a run.",
            "All eight data sets; the paper's text says six, its appendix three.",
            "BoTorch searches between the levels, and is rounded to them; Optuna and ours are "
            "given whole numbers.",
        ),
    ),
    Experiment(
        "gamma",
        "JES with different shares γ of exploitation",
        "App. “Ablation studies”",
        SYNTHETIC_CELLS,
        _with("jes", "exploit", (0, 0.05, 0.1, 0.2)),
        "marginal",
        MARGINAL,
        repetitions=25,
        kinds=("simple", "inference"),
        errors=1,
        notes=MARGINAL_NOTES[:1],
    ),
    Experiment(
        "misspecified",
        "Functions that a GP does not fit: Michalewicz 10-D, Levy 8-D",
        "App. “Model misspecification”",
        (
            Cell("michalewicz@0.01", 500, 100, refresh_every=10),
            Cell("levy@0.01", 400, 100, refresh_every=10),
        ),
        tuple(
            name for method in ("jes", "mes", "pes") for name in _with(method, "exploit", (0, 0.1))
        ),
        "marginal",
        MARGINAL,
        repetitions=5,
        target=1.0,
        notes=MARGINAL_NOTES,
    ),
    Experiment(
        "noise-levels",
        "GP samples in 4-D at nine levels of noise",
        "App. “Ablation study on σ²”",
        tuple(Cell(f"gp4@{v:g}", 200, 50) for v in NOISE_LEVELS),
        ("jes", "mes", "pes"),
        "known",
        KNOWN,
        repetitions=15,
        kinds=("inference",),
        notes=(*GP_NOTES[:2], "The paper names the lowest and the highest of its levels only."),
    ),
    Experiment(
        "pairs",
        "JES with different numbers of optimal pairs",
        "App. “Dependence on the number of MC samples”",
        _gp("", 50, (100, 100, 100, 100), GP_DIMS),
        _with("jes", "pairs", (4, 20, 100, 500)),
        "known",
        KNOWN,
        repetitions=20,
        kinds=("inference",),
        errors=1,
        notes=GP_NOTES[:1],
    ),
    Experiment(
        "pictures",
        "Where each method looks on one GP sample",
        "Figs. 1 to 3 and “queries”",
        (Cell("gp2", 100, 1),),
        FOUR,
        "known",
        KNOWN,
        repetitions=1,
        keep_queries=True,
    ),
    Experiment(
        "functions",
        "Functions of the literature, noise 10 % of their spread, default settings",
        "",
        tuple(Cell(name, 100, 0) for name in SYNTHETIC),
        ("optpair", "logei"),
        "marginal",
        {},
        repetitions=10,
    ),
    Experiment(
        "spared",
        "What is spared beyond 256 trials: default settings, and without sparing",
        "",
        (Cell("gp4", 384, 0),),
        ("optpair", "optpair:most_rows=4096"),
        "marginal",
        {},
        repetitions=5,
        kinds=("inference",),
        notes=("The two are the same up to 256 observations.",),
    ),
    Experiment(
        "live",
        "A network that is trained at each evaluation",
        "",
        (Cell("live-mlp", 60, 0),),
        ("optpair", "logei", "random"),
        "marginal",
        {},
        repetitions=10,
        kinds=("inference", "observed"),
        errors=1,
        target=0.03,
    ),
)
"""What docs/benchmarks.md shows."""
ARENA = ("optpair", "optuna-gp", "optuna-tpe-group", "botorch-lognei", "random")
"""Ours beside its peers, each at its defaults."""
ANSWERS = (
    Experiment(
        "answers",
        "Functions that others wrote, within users' budgets",
        "",
        _answers(tuning=False),
        ARENA,
        "marginal",
        {},
        repetitions=3,
        kinds=("inference",),
        own_start=True,
    ),
    Experiment(
        "answers-tuning",
        "Functions that others wrote, to tune settings on",
        "",
        _answers(tuning=True),
        ARENA,
        "marginal",
        {},
        repetitions=3,
        kinds=("inference",),
        own_start=True,
    ),
)
"""What docs/answers.md is about."""
OUTCOMES = (
    Experiment(
        "constrained",
        "One objective under constraints, within users' budgets",
        "",
        tuple(_users(name) for name in (*joint.CONSTRAINED, "gramacy@5%", "g24@5%")),
        ("optpair", "lognei", "optuna-gp", "botorch-lognei", "random"),
        "marginal",
        {},
        repetitions=3,
        kinds=("inference",),
        own_start=True,
    ),
    Experiment(
        "fronts",
        "Two and three objectives, within users' budgets",
        "",
        tuple(_users(name) for name in (*joint.FRONTS, "branin-currin@5%")),
        (
            "optpair",
            "lognehvi",
            "optuna-gp",
            "botorch-lognehvi",
            "botorch-jes",
            "optuna-nsga2",
            "random",
        ),
        "marginal",
        {},
        repetitions=3,
        kinds=("inference",),
        own_start=True,
    ),
)
"""What docs/outcomes.md shows."""
BELIEF_READ = (3, 5, 8, 10, 12, 15, 17, 20, 22, 24)
"""Evaluations a dimension after which `beliefs` asks for a recommendation."""


def _beliefs(*names: str) -> tuple[Cell, ...]:
    return tuple(
        Cell(task, 24 * d, 0, read=tuple(count * d for count in BELIEF_READ))
        for name in names
        for task, d in ((f"box-{name}", dimensions(f"box-{name.partition('@')[0]}")),)
    )


def _counted(read: Sequence[int], *names: str) -> tuple[Cell, ...]:
    return tuple(Cell(name, read[-1], 0, read=tuple(read)) for name in names)


TRANSFERRED = ("box-branin", "box-hartmann3", "box-hartmann6@5%")
TRANSFER_READ = (1, 2, 3, 5, 7, 10)
"""Evaluations a dimension after which `transfer` and `contexts` ask for a recommendation."""


def _transfer(name: str) -> Cell:
    d = dimensions(name)
    read = tuple(count * d for count in TRANSFER_READ)
    return Cell(name, read[-1], 0, read=read)


BELIEVERS = ("optpair", "optpair-right", "optpair-near", "optpair-wrong", "logei", "logei-right")
SPACES = (
    Experiment(
        "beliefs",
        "Right, near and wrong guesses of where the optimum is",
        "",
        _beliefs("branin", "hartmann3", "hartmann6", "branin@5%", "hartmann3@5%", "hartmann6@5%"),
        (*BELIEVERS, "logei-wrong"),
        "marginal",
        {},
        repetitions=8,
        kinds=("inference",),
        own_start=True,
    ),
    Experiment(
        "beliefs-tuning",
        "Guesses, to tune settings on",
        "",
        _beliefs("gp2", "gp4", "rastrigin", "dixon-price", "branin", "hartmann3", "hartmann6"),
        (*BELIEVERS, "logei-wrong"),
        "marginal",
        {},
        repetitions=4,
        kinds=("inference",),
        own_start=True,
    ),
    Experiment(
        "shelf",
        "Tables of reactions: only their rows exist",
        "",
        _counted((5, 10, 20, 50), "shelf-buchwald", "shelf-suzuki"),
        ("optpair", "logei", "botorch-lognei", "random"),
        "marginal",
        {},
        repetitions=10,
        kinds=("simple",),
        own_start=True,
    ),
    Experiment(
        "shelf-tuning",
        "Tables of other measurements, to tune settings on",
        "",
        _counted((5, 10, 20, 50), "shelf-coupling", "shelf-fullerene", "shelf-hplc", "shelf-blend"),
        ("optpair", "logei", "botorch-lognei", "random"),
        "marginal",
        {},
        repetitions=4,
        kinds=("simple",),
        own_start=True,
    ),
    Experiment(
        "conditional",
        "Parameters that are there only with some values of others",
        "",
        _counted(
            (10, 20, 30, 50),
            *spaces.CONDITIONAL,
            *pipelines.NAMES,
        ),
        ("optpair", "optpair-optuna", "optuna-tpe-group", "random"),
        "marginal",
        {},
        repetitions=20,
        kinds=("inference",),
        own_start=True,
    ),
    Experiment(
        "mixtures",
        "Fractions that sum to one, and other linear limits",
        "",
        tuple(_users(name) for name in spaces.MIXTURES),
        ("optpair", "botorch-lognei", "random"),
        "marginal",
        {},
        repetitions=5,
        kinds=("inference",),
        own_start=True,
    ),
    Experiment(
        "transfer",
        "After studies of similar tasks, and of others",
        "",
        tuple(_transfer(name) for name in (*related.TABLES, *TRANSFERRED)),
        ("optpair", "optpair-after", "optpair-after-unrelated"),
        "marginal",
        {},
        repetitions=5,
        kinds=("inference",),
        own_start=True,
    ),
    Experiment(
        "transfer-tuning",
        "The same, to tune settings on",
        "",
        tuple(_transfer(name) for name in ("box-gp2", "box-gp4", "box-dixon-price")),
        ("optpair", "optpair-after", "optpair-after-unrelated"),
        "marginal",
        {},
        repetitions=4,
        kinds=("inference",),
        own_start=True,
    ),
    Experiment(
        "contexts",
        "Two sites: one search with a context, and a search for each",
        "",
        tuple(_transfer(name) for name in related.SITE_TASKS),
        ("optpair", "optpair-apart"),
        "marginal",
        {},
        repetitions=5,
        kinds=("inference",),
        own_start=True,
    ),
    Experiment(
        "plates",
        "Eight trials at a time, and one",
        "",
        tuple(_users(f"box-{name}") for name in ("branin", "hartmann3", "gp4", "hartmann6@5%")),
        ("optpair", "optpair-8", "optuna-gp-8", "optuna-tpe-8"),
        "marginal",
        {},
        repetitions=6,
        kinds=("inference",),
        own_start=True,
    ),
)
"""What the pages on limits, conditions, beliefs, shelves, plates and earlier studies show."""
SUMMED = ("gp", "gp-noisy", "synthetic", "mlp", "functions", "live")
"""Experiments whose tasks are summed up; the others look at some of them again."""
ALL = ON_PAGE + ANSWERS + OUTCOMES + SPACES
EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType({e.name: e for e in ALL})


def get(name: str) -> Experiment:
    """The experiment of that name, or an error that lists them."""
    if name not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, not {name!r}")
    return EXPERIMENTS[name]


def budget_of(name: str, task: str) -> int | None:
    """The evaluations of an experiment's task; None where it has no such task."""
    cells = EXPERIMENTS[name].cells if name in EXPERIMENTS else ()
    return next((cell.evaluations for cell in cells if cell.task == task), None)


def place(name: str, task: str) -> tuple[int, int]:
    """Where a task stands among all of all experiments; those that are not known come last.

    >>> place("gp", "gp4"), place("synthetic", "branin@0.01")
    ((0, 1), (2, 0))
    """
    names, cells = list(EXPERIMENTS), EXPERIMENTS[name].cells if name in EXPERIMENTS else ()
    own = [cell.task for cell in cells]
    return (
        names.index(name) if name in names else len(names),
        own.index(task) if task in own else len(own),
    )


def check_kind(name: str) -> Kind:
    """The kind of that name, or an error that lists them."""
    if name not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, not {name!r}")
    return cast(Kind, name)
