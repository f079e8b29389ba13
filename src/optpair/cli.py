"""The command line: studies (`optpair run` and its kin), `optpair demo` and `optpair bench`.

Everything heavy is imported when a command runs, so that `--help` answers at once.
"""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from optpair.study.config import StudyFile

app = typer.Typer(
    help="Bayesian optimisation that tells where the optimum is, what it is worth, and how sure "
    "it is.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
bench = typer.Typer(help="Regret and speed on known tasks.", no_args_is_help=True)
app.add_typer(bench, name="bench")

ERROR, USAGE, NOTHING_YET, INTERRUPTED = 1, 2, 3, 130
"""Exit codes: something is wrong; with the arguments; no trial has a value; Ctrl-C."""

File = Annotated[Path, typer.Argument(help="The study file.", metavar="STUDY.TOML")]
Json = Annotated[bool, typer.Option("--json", help="JSON, on standard output.")]


def _fail(message: str, code: int = ERROR) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(code)


def _version(show: bool) -> None:
    if show:
        from optpair import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Bayesian optimisation that tells where the optimum is, what it is worth, and how sure."""


@app.command()
def demo() -> None:
    """Tune a real, noisy model."""
    try:
        from optpair.demo import main as show

        show()
    except ModuleNotFoundError as error:
        _fail(f"the demo needs {error.name}: pip install 'optpair[demo]'")


@contextmanager
def _study(path: Path) -> Iterator[StudyFile]:
    """The study file; what is wrong with it, or with its storage, becomes an exit code."""
    try:
        from optpair.study import commands, config
    except ModuleNotFoundError as error:
        _fail(f"studies need {error.name}: pip install 'optpair[optuna]'")
    try:
        yield config.load(path)
    except commands.NothingYetError as error:
        _fail(str(error), NOTHING_YET)
    except config.StudyError as error:
        _fail(str(error))


def _show(data: Any, json: bool, text: str) -> None:
    typer.echo(json_.dumps(data, indent=2) if json else text)


def _say(message: str) -> None:
    typer.echo(message, err=True)


@app.command()
def run(
    file: File,
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    worker_of: Annotated[int | None, typer.Option(hidden=True)] = None,
    json: Json = False,
) -> None:
    """Evaluate a study's objective until it has its evaluations.

    Run it again to resume, or on more machines that share the storage. Ctrl-C lets the running
    trial end; a second one abandons it. Exit codes: 0 all evaluations were made, 1 error, 3 none
    of them gave a value, 130 interrupted.
    """
    with _study(file) as study:
        from optpair.study import commands

        done = commands.run(study, workers, _say, worker_of)
        if worker_of is None:
            found = commands.status(study)
            complete = found["ended"] >= study.evaluations
            answers = complete and found["counts"].get("told") and commands.has_engine(study)
            best = commands.recommend(study) if answers else {}
            text = best.pop("text", None)
            shown = {**found, "recommendation": best or None}
            _show(shown, json, "\n".join(filter(None, [_status(found), text])))
            if complete and not found["counts"].get("told"):
                raise typer.Exit(NOTHING_YET)
            if done and not complete and not found["out"]:
                _fail("the workers ended before all evaluations were made")
        if not done:
            raise typer.Exit(INTERRUPTED)


@app.command()
def ask(file: File, json: Json = False) -> None:
    """Suggest a trial for you to run; tell what it gave by its number."""
    with _study(file) as study:
        from optpair.study import commands

        found = commands.ask(study)
        _show(found, json, f"trial {found['trial']}: {_listed(found['params'])}")


@app.command(context_settings={"ignore_unknown_options": True})  # VALUE may be -0.5
def tell(
    file: File,
    trial: Annotated[int, typer.Argument(help="Its number, as `ask` gave it.", min=0)],
    value: Annotated[float | None, typer.Argument(help="What it gave.")] = None,
    noise_var: Annotated[
        float | None, typer.Option(min=0.0, help="The variance of the value's noise.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="It gave no value.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Forget it.")] = False,
    message: Annotated[str | None, typer.Option(help="Why it failed.")] = None,
    json: Json = False,
) -> None:
    """Tell what a trial gave: VALUE, --failed, or --cancel."""
    if [value is not None, failed, cancel].count(True) != 1:
        _fail("give one of VALUE, --failed and --cancel", USAGE)
    if value is not None and not abs(value) <= 1e300:
        _fail(f"VALUE must be a finite number, not {value}; --failed says that it failed", USAGE)
    if (noise_var is not None and value is None) or (message and not failed):
        _fail("--noise-var goes with VALUE, --message with --failed", USAGE)
    with _study(file) as study:
        from optpair.study import commands

        outcome = "failed" if failed else "cancelled" if cancel else "told"
        found = commands.tell(study, trial, value, noise_var, outcome, message)
        _show(found, json, f"trial {trial}: {found['state']}")


@app.command()
def recommend(file: File, json: Json = False) -> None:
    """Show the best predicted point, with its 95 % interval. Exit code 3: no value yet."""
    with _study(file) as study:
        from optpair.study import commands

        found = commands.recommend(study)
        text = found.pop("text")
        _show(found, json, text)


@app.command()
def status(file: File, json: Json = False) -> None:
    """Show how many trials ended, how, and which are out."""
    with _study(file) as study:
        from optpair.study import commands

        found = commands.status(study)
        _show(found, json, _status(found))


@app.command()
def export(
    file: File,
    out: Annotated[Path | None, typer.Option(help="Write here instead of showing.")] = None,
    json: Json = False,
) -> None:
    """Show every trial as CSV, or as JSON."""
    with _study(file) as study:
        from optpair.study import commands

        rows = commands.export(study)
        text = json_.dumps(rows, indent=2) + "\n" if json else commands.as_csv(study, rows)
        if out is None:
            sys.stdout.write(text)
            return
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            _fail(str(error))


def _status(found: dict[str, Any]) -> str:
    counts = ", ".join(f"{n} {state}" for state, n in found["counts"].items()) or "none yet"
    lines = [
        f"study {found['study']} in {found['storage']}, {found['direction']}",
        f"{found['ended']} of {found['evaluations']} evaluations; trials: {counts}",
    ]
    best = found["best_observed"]
    if best is not None:
        lines.append(
            f"best observed {best['value']:.6g} in trial {best['trial']}: {_listed(best['params'])}"
        )
    lines += [
        f"{row['state']}: trial {row['trial']}, since {row['started']}: {_listed(row['params'])}"
        for row in found["out"]
    ]
    return "\n".join(lines)


def _listed(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in params.items())


@bench.command()
def regret(
    task: Annotated[str, typer.Argument(help="gp2, gp4, gp6, gp12, branin, hartmann3, hartmann6")],
    method: Annotated[
        list[str], typer.Option(help="An acquisition function, or 'random'; repeat for more.")
    ] = ["jes", "logei"],  # noqa: B006 — Typer's way to a repeated option
    tasks: Annotated[int, typer.Option(min=1, help="Repetitions: seeds from --seed0 on.")] = 50,
    seed0: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    evaluations: Annotated[
        int | None, typer.Option(min=1, help="After the initial design; 50 a dimension by default.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Evaluations between two checkpoints.")] = 10,
    known: Annotated[
        bool | None,
        typer.Option(
            "--known/--marginal",
            help="Hyperparameters known (default for gp tasks), or averaged over.",
        ),
    ] = None,
    noise_var: Annotated[
        float | None, typer.Option(min=0.0, help="Noise variance, instead of the task's own.")
    ] = None,
    sets: Annotated[int | None, typer.Option(min=1, help="Hyperparameter sets.")] = None,
    pairs: Annotated[int | None, typer.Option(min=1, help="Optimal pairs a set.")] = None,
    exploit: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="γ.")] = None,
    initial: Annotated[
        int | None, typer.Option(min=1, help="Uniform initial points; D + 1 by default.")
    ] = None,
    kernel: Annotated[str | None, typer.Option(help="rbf or matern52.")] = None,
    features: Annotated[int | None, typer.Option(min=2, help="Random features a path.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="JSON lines; runs that are there are not done again.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each on a core of its own.")] = 1,
) -> None:
    """Inference and simple regret of some methods on one task.

    A run is (task, method, seed). On gp tasks hyperparameters are known, with 100 pairs and no
    exploitation, as in the paper; on others the library's defaults are used. Every method of a
    repetition has the same initial points and the same noise.
    """
    from rich.console import Console

    from optpair.bench import methods
    from optpair.bench import regret as module

    settings = {
        "sets": sets,
        "pairs": pairs,
        "exploit": exploit,
        "initial": initial,
        "kernel": kernel,
        "features": features,
    }
    model: methods.Model | None = None
    if known is not None:
        model = "known" if known else "marginal"
    runs = [
        module.Run(task, name, seed, noise_var, evaluations, every, model, settings)
        for seed in range(seed0, seed0 + tasks)
        for name in method
    ]
    try:
        for name in method:
            methods.check_name(name)
        runs[0].identity()
        if out is not None:
            module.read(out)
    except (OSError, ValueError) as error:
        _fail(str(error))
    rows = module.benchmark(runs, out, workers)
    console = Console()
    console.print(*module.tables(rows))
    for row in module.beaten(rows):
        console.print(f"[red]{row['method']} seed {row['seed']} beat the optimum on file[/red]")


@bench.command()
def speed(
    d: Annotated[list[int], typer.Option(min=1, help="Dimensions; repeat for more.")] = [6],  # noqa: B006
    n: Annotated[
        list[int], typer.Option(min=2, help="Told trials when timing begins; repeat for more.")
    ] = [100],  # noqa: B006
    sets: Annotated[int | None, typer.Option(min=1, help="Hyperparameter sets.")] = None,
    pairs: Annotated[int | None, typer.Option(min=1, help="Optimal pairs a set.")] = None,
    candidates: Annotated[int | None, typer.Option(min=1, help="Screened points.")] = None,
    method: Annotated[str, typer.Option(help="Acquisition function.")] = "jes",
    repeats: Annotated[int, typer.Option(min=1, help="Timed asks.")] = 20,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's setting: 10 given sets × 10 pairs.")
    ] = False,
    peers: Annotated[
        bool, typer.Option("--peers", help="Optuna and BoTorch beside it (see `make peers`).")
    ] = False,
    cold: Annotated[bool, typer.Option(help="Also time the first ask of a new process.")] = True,
    study: Annotated[
        int, typer.Option(min=0, help="Also time whole studies of so many instant evaluations.")
    ] = 0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Cores for everything; all by default.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the numbers here.")] = None,
) -> None:
    """Seconds an ask, warm and cold, stage by stage, and beside other libraries."""
    from optpair.bench import cores

    try:
        if threads is not None and not cores.limited(threads):
            raise typer.Exit(cores.rerun(threads))
        from optpair.bench import speed as module

        plan = module.Plan(
            sets=sets,
            pairs=pairs,
            candidates=candidates,
            method=method,
            repeats=repeats,
            paper=paper,
            peers=peers,
            cold=cold,
            study=study,
        )
        plans = [replace(plan, dimensions=i, n=j) for i in d for j in n]
        module.main(plans, json)
    except (OSError, ValueError) as error:
        _fail(str(error))


@bench.command()
def picture(
    name: Annotated[str, typer.Argument(help="acquisitions, pairs or conditioning")],
    out: Annotated[Path, typer.Option(help="Where the PNG goes.")] = Path("picture.png"),
) -> None:
    """Draw a picture of the documentation."""
    names = ("acquisitions", "pairs", "conditioning")
    if name not in names:
        _fail(f"picture must be one of {', '.join(names)}, not {name!r}")
    try:
        from optpair.bench import explain, pictures

        if name == "acquisitions":
            for key, x in pictures.acquisitions(out).items():
                typer.echo(f"{key:8} looks next at x = {x:.3f}")
            return
        found = explain.pairs(out) if name == "pairs" else explain.conditioning(out)
        for key, number in found.items():
            typer.echo(f"{key:22} {number:.3f}")
    except ModuleNotFoundError as error:
        _fail(f"pictures need {error.name}: pip install 'optpair[demo]'")
    except OSError as error:
        _fail(str(error))


@bench.command()
def luck(
    searches: Annotated[int, typer.Option(min=2, help="Repetitions: seeds from 0 on.")] = 100,
    out: Annotated[
        Path | None, typer.Option(help="JSON lines; searches that are there are not done again.")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw it here, as PNG.")] = None,
) -> None:
    """The luckiest trial and the recommendation: what they promise, and what they keep."""
    try:
        from optpair.bench import luck as module

        rows = module.measure(searches, out)
        for key, (mean, error) in module.summary(rows).items():
            typer.echo(f"{key:44} {mean:.3f} ± {error:.3f}")
        if picture is not None:
            module.draw(rows, picture)
    except ModuleNotFoundError as error:
        _fail(f"pictures need {error.name}: pip install 'optpair[demo]'")
    except OSError as error:
        _fail(str(error))


@bench.command()
def soak(
    sampler: Annotated[str, typer.Option(help="sobol, random, or an acquisition function.")] = (
        "sobol"
    ),
    storage: Annotated[
        str | None, typer.Option(help="A storage's URL; an SQLite file in --folder by default.")
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="Where files go; temporary if none.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 4,
    kills: Annotated[int, typer.Option(min=0, help="How often one of them is killed.")] = 50,
    evaluations: Annotated[int, typer.Option(min=1, help="Trials after the last kill.")] = 20,
    longest: Annotated[
        float, typer.Option(min=0.0, help="Seconds between two kills, at most.")
    ] = 0.1,
    seconds: Annotated[float, typer.Option(min=0.0, help="An evaluation takes.")] = 0.01,
    stale_after: Annotated[float, typer.Option(min=0.1, help="Seconds without a beat.")] = 1.0,
    blind: Annotated[
        bool, typer.Option("--blind", help="Ignore running trials, for comparison.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the kills.")] = 0,
) -> None:
    """Kill workers of a study with SIGKILL at random, and look for anything lost. Shows JSON.

    Exit code 1 where something was lost, wrong or told twice.
    """
    import tempfile

    from optpair.bench import soak as module

    with tempfile.TemporaryDirectory() as temporary:
        place = (folder or Path(temporary)).resolve()
        found = module.soak(
            module.Plan(
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
            )
        )
    typer.echo(json_.dumps(found, indent=2))
    if found["lost"] or found["wrong"] or found["duplicated"] or found["told"] != found["wanted"]:
        raise typer.Exit(ERROR)


if __name__ == "__main__":
    app()
