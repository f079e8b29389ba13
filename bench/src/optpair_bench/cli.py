"""Command line of the benchmarks: `optpair bench run` and its kin, or `optpair-bench run`.

Everything heavy is imported when a command runs.
"""

from __future__ import annotations

import json as json_
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from optpair.cli.exit_codes import ERROR, INTERRUPTED, USAGE, fail, say
from optpair.cli.help_texts import PlainApp, PlainCommand

app = PlainApp(help="Experiments, speed, and figures of both.", add_completion=False)


class Several(PlainCommand):
    """A command whose repeated options also take several values at once: `--dims 2 4`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Spell `--dims 2 4` as `--dims 2 --dims 4`."""
        repeated = {name for p in self.params if getattr(p, "multiple", False) for name in p.opts}
        spelt: list[str] = []
        option, count = "", 0
        for argument in args:
            if argument.startswith("--"):
                option, count = argument, 0
            elif option in repeated:
                spelt += [option] if count else []
                count += 1
            spelt.append(argument)
        return super().parse_args(ctx, spelt)


Name = Annotated[str, typer.Argument(help="gp, gp-noisy, synthetic, mlp, gamma, misspecified, …")]
Rows = Annotated[
    Path | None, typer.Option(help="JSON lines; bench/results/EXPERIMENT.jsonl by default.")
]
RESULTS = Path("bench/results")
"""Where rows are, from the root of the repository."""


def _rows_path(name: str, given: Path | None) -> Path:
    return given or RESULTS / f"{name}.jsonl"


@app.command(cls=Several)
def run(
    experiment: Name,
    tasks: Annotated[list[str], typer.Option(help="Only these tasks.")] = [],  # noqa: B006
    dims: Annotated[list[int], typer.Option(help="Only tasks of these dimensions.")] = [],  # noqa: B006
    methods: Annotated[
        list[str],
        typer.Option(
            help="Instead of the paper's: jes, jes:pairs=20, optpair, random, optuna-gp …"
        ),
    ] = [],  # noqa: B006
    repetitions: Annotated[
        int | None, typer.Option(min=1, help="How many seeds; by default what two cores can do.")
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="As many repetitions per task as in the paper.")
    ] = False,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    evaluations: Annotated[
        int | None,
        typer.Option(min=1, help="How many after the initial design; the paper's by default."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes, one thread each.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="A Dask scheduler's address; its workers do the runs.")
    ] = None,
    out: Rows = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say what there is to do, and how long it takes.")
    ] = False,
) -> None:
    """Run an experiment, or continue it.

    A run is (experiment, task, method, seed); runs that are on file are not done again. It may be
    killed at any time, and several runners may share a file.
    """
    from optpair_bench.running import runner

    path = _rows_path(experiment, out)
    chosen = runner.Plan(
        experiment, tasks, dims, methods, repetitions, first_seed, evaluations, paper
    )
    try:
        runs = chosen.runs()
        if plan:
            typer.echo(runner.describe(runs, path, workers))
            return
        outcome = runner.benchmark(runs, path, workers, scheduler)
    except (OSError, ValueError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("interrupted; the same command goes on where it was", INTERRUPTED)
    typer.echo(f"{len(outcome.rows)} of {len(runs)} runs are in {path}")
    if outcome.elsewhere:
        typer.echo(f"{outcome.elsewhere} are being done by another runner")
    if outcome.outdated:
        typer.echo(f"{outcome.outdated} have other settings or another engine than today's; kept")
    if outcome.failed:
        reasons = "\n".join(f"  {' '.join(map(str, k))}: {v}" for k, v in outcome.failed.items())
        fail(f"{len(outcome.failed)} runs failed:\n{reasons}")


@app.command(cls=Several)
def optima(
    tasks: Annotated[list[str], typer.Option(help="Only these tasks.")] = [],  # noqa: B006
    out: Annotated[Path, typer.Option(help="The file; other tasks in it stay.")] = Path(
        "bench/src/optpair_bench/tasks/packages.json"
    ),
) -> None:
    """Measure the functions of `answers`: spreads and best points."""
    from optpair_bench.tasks import check, packages
    from optpair_bench.tasks import optima as measuring

    try:
        for name in tasks or packages.ENTRIES:
            check(name)
            if name not in packages.ENTRIES:
                raise ValueError(f"task must be one of {', '.join(packages.ENTRIES)}, not {name!r}")
        for name, found in measuring.write(out, tasks or packages.ENTRIES):
            typer.echo(f"{name}: spread {found['spread']:.5g}, best point by the {found['from']}")
    except (OSError, ValueError) as error:
        fail(str(error))


@app.command()
def merge(
    out: Annotated[Path, typer.Argument(help="The file to add to, or to make.")],
    files: Annotated[
        list[Path], typer.Argument(help="Files of rows, for example from other machines.")
    ],
) -> None:
    """Merge the rows of several files into one.

    Runs that are there already stay as they are.
    """
    from optpair_bench.running import rows

    try:
        found = rows.merge(out, files)
    except (OSError, ValueError) as error:
        fail(str(error))
    typer.echo(f"{found.added} rows added to {out}, {found.there} were there")
    if found.other:
        say(f"{found.other} were there with other results; kept as they were")


@app.command()
def table(
    experiment: Name,
    kind: Annotated[
        str | None,
        typer.Option(help="inference, simple or observed; by default all that the experiment has."),
    ] = None,
    rows: Rows = None,
) -> None:
    """Show the results of an experiment, as Markdown."""
    from optpair_bench.analysis import outcomes, spaces, statistics
    from optpair_bench.running import experiments
    from optpair_bench.running.rows import read

    try:
        chosen = experiments.get(experiment)
        kinds = [experiments.check_kind(kind)] if kind else list(chosen.kinds)
        found = list(read(_rows_path(experiment, rows)).values())
    except (OSError, ValueError) as error:
        fail(str(error))
    typer.echo(f"{chosen.title}\n")
    if chosen in experiments.OUTCOMES + experiments.SPACES:
        if not found:
            fail(f"there are no rows: optpair bench run {experiment}")
        module = outcomes if chosen in experiments.OUTCOMES else spaces
        typer.echo(module.markdown(found, chosen), nl=False)
        return
    for one in kinds:
        typer.echo(statistics.markdown(found, chosen, one))
    for row in statistics.beaten(found):
        say(f"{row['task']} {row['method']} seed {row['seed']} beat the optimum")


@app.command(cls=Several)
def summary(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files of rows; by default bench/results/ of every experiment but ablations."
        ),
    ] = None,
    to: Annotated[str, typer.Option(help="The method to compare others with.")] = "optpair",
    kind: Annotated[str, typer.Option(help="inference, simple or observed.")] = "inference",
    budgets: Annotated[
        list[int], typer.Option(min=1, help="Evaluations per dimension; the nearest checkpoint.")
    ] = [25, 50],  # noqa: B006
    methods: Annotated[list[str], typer.Option(help="Only these, and the one of --to.")] = [],  # noqa: B006
) -> None:
    """Compare the methods over all tasks, as Markdown.

    All tasks have the same weight.
    """
    from optpair_bench.analysis import overall
    from optpair_bench.running import experiments
    from optpair_bench.running.rows import read

    try:
        paths = files or [RESULTS / f"{name}.jsonl" for name in experiments.SUMMED]
        found = [row for path in paths for row in read(path).values()]
        if methods:
            found = [row for row in found if row["method"] in {to, *methods}]
        typer.echo(overall.markdown(found, to, experiments.check_kind(kind), budgets))
    except (OSError, ValueError) as error:
        fail(str(error))


@app.command(cls=Several)
def arena(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of rows; by default bench/results/answers*.jsonl."),
    ] = None,
    to: Annotated[str, typer.Option(help="The method to compare with the peers.")] = "optpair",
    budgets: Annotated[
        list[int], typer.Option(min=1, help="Evaluations per dimension: 2, 5, 10 or 20.")
    ] = [5, 10, 20],  # noqa: B006
    methods: Annotated[list[str], typer.Option(help="Only these, and the one of --to.")] = [],  # noqa: B006
) -> None:
    """Compare ours with its peers, as Markdown.

    By dimension, noise and budget.
    """
    from optpair_bench.analysis import arena, statistics
    from optpair_bench.running.rows import read

    try:
        paths = files or sorted(RESULTS.glob("answers*.jsonl"))
        found = [row for path in paths for row in read(path).values()]
        if methods:
            found = [row for row in found if row["method"] in {to, *methods}]
        typer.echo(arena.markdown(found, to, budgets), nl=False)
    except (OSError, ValueError) as error:
        fail(str(error))
    for row in statistics.beaten(found):
        say(f"{row['task']} {row['method']} seed {row['seed']} beat the best value known")


@app.command()
def compare(
    old: Annotated[Path, typer.Argument(help="Rows to compare with.")],
    new: Annotated[
        Path, typer.Argument(help="Rows of the same runs, for example by another engine.")
    ],
    kind: Annotated[str, typer.Option(help="inference, simple or observed.")] = "inference",
) -> None:
    """Compare two files of rows, run by run, as Markdown."""
    from optpair_bench.analysis import compare
    from optpair_bench.running import experiments
    from optpair_bench.running.rows import read

    try:
        for path in (old, new):
            if not path.exists():
                raise FileNotFoundError(f"there is no file {path}")
        found = (read(old), read(new))
        typer.echo(compare.markdown(*found, experiments.check_kind(kind)), nl=False)
    except (OSError, ValueError) as error:
        fail(str(error))


@app.command()
def figures(
    experiment: Annotated[
        str, typer.Argument(help="An experiment, `together`, `approximation`, or `all`.")
    ],
    rows: Rows = None,
    folder: Annotated[Path, typer.Option(help="Where to write the PNGs.")] = Path("docs/figures"),
) -> None:
    """Redraw the paper's figures from the rows on file."""
    try:
        from optpair_bench import page

        for path in page.draw(experiment, rows, RESULTS, folder):
            typer.echo(path)
    except ModuleNotFoundError as error:
        fail(f"figures need {error.name}: pip install './bench[figures]'")
    except (OSError, ValueError) as error:
        fail(str(error))


@app.command()
def page(
    out: Annotated[Path, typer.Option(help="The overview.")] = Path("docs/benchmarks.md"),
) -> None:
    """Write the pages of results beside the paper's claims."""
    try:
        from optpair_bench.page import write

        written = write(out, RESULTS)
    except (OSError, ValueError) as error:
        fail(str(error))
    for path in written:
        typer.echo(path)


@app.command()
def speed(
    d: Annotated[list[int], typer.Option(min=1, help="Dimensions; repeat for more.")] = [6],  # noqa: B006
    n: Annotated[
        list[int], typer.Option(min=2, help="Told trials before timing begins; repeat for more.")
    ] = [100],  # noqa: B006
    sets: Annotated[int | None, typer.Option(min=1, help="Hyperparameter sets.")] = None,
    pairs: Annotated[int | None, typer.Option(min=1, help="Optimal pairs per set.")] = None,
    candidates: Annotated[int | None, typer.Option(min=1, help="Screened points.")] = None,
    method: Annotated[
        list[str],
        typer.Option(help="Acquisition function; repeat to compare several."),
    ] = [],  # noqa: B006 — Typer's way to a repeated option
    repeats: Annotated[int, typer.Option(min=1, help="Timed asks.")] = 20,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's setting: 10 given sets × 10 pairs.")
    ] = False,
    peers: Annotated[
        bool, typer.Option("--peers", help="Optuna and BoTorch beside it (see `make peers`).")
    ] = False,
    levels: Annotated[
        int | None, typer.Option(min=2, help="Inputs are whole numbers with this many levels.")
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Instead: new processes, up to their first ask.")
    ] = False,
    studies: Annotated[
        bool, typer.Option("--studies", help="Instead: whole searches, 6-D of 100 and 2-D of 15.")
    ] = False,
    search: Annotated[
        int, typer.Option(min=0, help="Instead: the slowest ask of a search of this many trials.")
    ] = 0,
    outcomes: Annotated[
        bool, typer.Option("--outcomes", help="Instead: a constraint, two objectives, a fidelity.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Cores for everything; all by default.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the numbers here.")] = None,
) -> None:
    """Time asks, stage by stage, and beside other libraries.

    Or, instead, cold starts, whole searches, every ask of a long search, or asks with several
    outcomes beside those with one. All in CPU time.
    """
    from optpair_bench.running import cores

    if [cold, studies, search > 0, outcomes].count(True) > 1:
        fail(
            "give one of --cold, --studies, --search and --outcomes: each is a table of its own",
            USAGE,
        )
    try:
        if threads is not None and not cores.limited(threads):
            raise typer.Exit(cores.rerun(threads))
        from optpair_bench.timing import report, speed

        plan = speed.Plan(
            sets=sets,
            pairs=pairs,
            candidates=candidates,
            method="".join(method[:1]),
            beside=tuple(method[1:]),
            repeats=repeats,
            paper=paper,
            peers=peers,
            levels=levels,
        )
        plans = [replace(plan, dimensions=i, n=j) for i in d for j in n]
        if cold:
            report.cold(plans, json)
        elif studies:
            report.searches(json, wanted=peers)
        elif search:
            report.long([replace(plan, dimensions=i) for i in d], search, json)
        elif outcomes:
            report.several(plans, json)
        else:
            report.warm(plans, json)
    except (OSError, ValueError) as error:
        fail(str(error))


@app.command()
def picture(
    name: Annotated[str, typer.Argument(help="acquisitions, pairs, conditioning or film")],
    out: Annotated[Path, typer.Option(help="Where to write the PNG (the film is an SVG).")] = Path(
        "picture.png"
    ),
) -> None:
    """Draw a picture of the documentation."""
    names = ("acquisitions", "pairs", "conditioning", "film")
    if name not in names:
        fail(f"picture must be one of {', '.join(names)}, not {name!r}")
    try:
        from optpair_bench.figures import acquisitions, film, optimal_pairs

        if name == "film":
            for count, spread in film.film(out).items():
                typer.echo(f"{count:3} trials: 80 % of the samples within {spread:.2f}")
            return
        if name == "acquisitions":
            for key, x in acquisitions.acquisitions(out).items():
                typer.echo(f"{key:8} looks next at x = {x:.3f}")
            return
        found = optimal_pairs.pairs(out) if name == "pairs" else optimal_pairs.conditioning(out)
        for key, number in found.items():
            typer.echo(f"{key:22} {number:.3f}")
    except ModuleNotFoundError as error:
        fail(f"pictures need {error.name}: pip install './bench[figures]'")
    except OSError as error:
        fail(str(error))


@app.command()
def luck(
    searches: Annotated[
        int, typer.Option(min=2, help="How many searches, with seeds from 0 on.")
    ] = 100,
    out: Annotated[
        Path | None, typer.Option(help="JSON lines; searches that are in it are not done again.")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Also draw it, as PNG.")] = None,
) -> None:
    """Compare what the luckiest trial and the recommendation promise.

    And what they keep.
    """
    try:
        from optpair_bench.analysis.luck import draw, measure, summary

        rows = measure(searches, out)
        for key, (mean, error) in summary(rows).items():
            typer.echo(f"{key:44} {mean:.3f} ± {error:.3f}")
        if picture is not None:
            draw(rows, picture)
    except ModuleNotFoundError as error:
        fail(f"pictures need {error.name}: pip install './bench[figures]'")
    except OSError as error:
        fail(str(error))


@app.command()
def coverage(
    searches: Annotated[
        int, typer.Option(min=1, help="Searches of each kind, with consecutive seeds.")
    ] = 40,
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 100,
    out: Annotated[
        Path, typer.Option(help="JSON lines; searches that are in it are not done again.")
    ] = Path("bench/results/coverage.jsonl"),
) -> None:
    """Measure how often 95 % intervals hold the truth.

    On fifteen kinds of objective.
    """
    from optpair_bench.analysis.coverage import measure, table

    try:
        typer.echo(table(measure(range(first, first + searches), out)))
    except OSError as error:
        fail(str(error))


@app.command()
def forecasts(
    searches: Annotated[
        int, typer.Option(min=1, help="Searches of each kind, with seeds from 0 on.")
    ] = 3,
    out: Annotated[
        Path, typer.Option(help="JSON lines; searches that are in it are not done again.")
    ] = Path("bench/results/forecasts.jsonl"),
) -> None:
    """Measure how right `until` is.

    That is about how many more trials a search takes, on twelve kinds of objective.
    """
    from optpair_bench.analysis.forecasts import measure, table

    try:
        typer.echo(table(measure(searches, out)))
    except OSError as error:
        fail(str(error))


@app.command()
def pruning(
    studies: Annotated[
        int, typer.Option(min=1, help="Studies of each task, with seeds from 0 on.")
    ] = 20,
    tasks: Annotated[str, typer.Option(help="Which tasks; by default all.")] = "",
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    out: Annotated[
        Path, typer.Option(help="JSON lines; studies that are in it are not done again.")
    ] = Path("bench/results/pruning.jsonl"),
) -> None:
    """Measure the fits that pruning saves in Optuna.

    And whether what is recommended keeps what is promised.
    """
    from optpair_bench.analysis.pruning import markdown, measure
    from optpair_bench.tasks.pruned import PRUNED_TASKS

    named = tasks.split(",") if tasks else list(PRUNED_TASKS)
    for name in named:
        if name not in PRUNED_TASKS:
            fail(f"{name!r} is none of {', '.join(PRUNED_TASKS)}")
    try:
        typer.echo("\n".join(markdown(measure(studies, out, named, first=first))))
    except ModuleNotFoundError as error:
        fail(f"{error.name} is missing: pip install optuna scikit-learn")


@app.command()
def fidelity(
    searches: Annotated[
        int, typer.Option(min=1, help="Searches of each task, with seeds from 0 on.")
    ] = 6,
    methods: Annotated[
        str,
        typer.Option(
            help="full, optpair, continued, mf-mes, mf-kg, tpe-hyperband, botorch-mf-mes, "
            "botorch-mf-kg."
        ),
    ] = "full,optpair,tpe-hyperband",
    tasks: Annotated[str, typer.Option(help="Which tasks; by default all.")] = "",
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    out: Annotated[
        Path, typer.Option(help="JSON lines; searches that are in it are not done again.")
    ] = Path("bench/results/fidelity.jsonl"),
    picture: Annotated[Path | None, typer.Option(help="Also draw it, as PNG.")] = None,
) -> None:
    """Measure the cost that cheaper looks save.

    That is the cost to reach what a search of whole looks ends at.
    """
    from optpair_bench.analysis.fidelity import METHODS, markdown, measure, reached, table
    from optpair_bench.tasks.looks import LOOK_TASKS

    chosen, named = methods.split(","), tasks.split(",") if tasks else list(LOOK_TASKS)
    for given, known in ((chosen, METHODS), (named, LOOK_TASKS)):
        for name in given:
            if name not in known:
                fail(f"{name!r} is none of {', '.join(known)}")
    try:
        rows = measure(searches, out, chosen, named, first=first)
        typer.echo("\n".join([table(rows), "", *markdown(rows), "", *reached(rows)]))
        if picture is not None:
            from optpair_bench.figures.fidelity import draw

            draw(rows, picture)
    except ModuleNotFoundError as error:
        fail(f"{error.name} is missing: pip install './bench[figures]', or './bench[peers]'")
    except OSError as error:
        fail(str(error))


@app.command()
def soak(
    sampler: Annotated[str, typer.Option(help="lattice, random, or an acquisition function.")] = (
        "lattice"
    ),
    storage: Annotated[
        str | None, typer.Option(help="A storage's URL; an SQLite file in --folder by default.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where to write files; a temporary folder by default.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 4,
    kills: Annotated[int, typer.Option(min=0, help="How many of them are killed, in all.")] = 50,
    evaluations: Annotated[int, typer.Option(min=1, help="Trials after the last kill.")] = 20,
    longest: Annotated[
        float, typer.Option(min=0.0, help="The most seconds between two kills.")
    ] = 0.1,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="Seconds that an evaluation takes.")
    ] = 0.01,
    stale_after: Annotated[
        float,
        typer.Option(min=0.1, help="Seconds without a heartbeat until a worker counts as dead."),
    ] = 1.0,
    blind: Annotated[
        bool, typer.Option("--blind", help="Ignore running trials, for comparison.")
    ] = False,
    several: Annotated[
        bool,
        typer.Option(
            "--several", help="Two objectives and a constraint, with some values missing."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the study and of the kills.")] = 0,
    setting: Annotated[
        list[str] | None, typer.Option(help="A setting, like sets=3; repeat for more.")
    ] = None,
) -> None:
    """Kill workers at random, and check that nothing is lost.

    Prints JSON. Exit code 1 if something was lost, half-written, wrong or told twice.
    """
    import tempfile
    import tomllib

    from optpair_bench.soak import Plan, soak

    with tempfile.TemporaryDirectory() as temporary:
        place = (folder or Path(temporary)).resolve()
        try:
            plan = Plan(
                folder=place,
                storage=storage or f"sqlite:///{place}/soak.db",
                sampler=sampler,
                workers=workers,
                kills=kills,
                evaluations=evaluations,
                longest=longest,
                stale_after=stale_after,
                seconds=seconds,
                seed=seed,
                blind=blind,
                several=several,
                settings=tomllib.loads("\n".join(setting or [])),
            )
            found = soak(plan)
        except tomllib.TOMLDecodeError as error:
            fail(f"--setting must be like sets=3, not {' '.join(setting or [])}: {error}", USAGE)
        except ValueError as error:
            fail(str(error))
    typer.echo(json_.dumps(found, indent=2))
    amiss = any(found[key] for key in ("lost", "half_written", "wrong", "duplicated"))
    surplus = found["told"] - found["wanted"]
    if amiss or not 0 <= surplus <= len(found["late"]):
        raise typer.Exit(ERROR)


if __name__ == "__main__":
    app()
