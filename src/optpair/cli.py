"""The command line: `optpair demo` and `optpair bench`.

Everything heavy is imported when a command runs, so that `--help` answers at once.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

app = typer.Typer(
    help="Bayesian optimisation that tells where the optimum is, what it is worth, and how sure "
    "it is.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
bench = typer.Typer(help="Regret and speed on known tasks.", no_args_is_help=True)
app.add_typer(bench, name="bench")


def _fail(message: str) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(1)


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
    name: Annotated[str, typer.Argument(help="acquisitions")],
    out: Annotated[Path, typer.Option(help="Where the PNG goes.")] = Path("picture.png"),
) -> None:
    """Draw a picture of the documentation."""
    if name != "acquisitions":
        _fail(f"picture must be 'acquisitions', not {name!r}")
    try:
        from optpair.bench.pictures import acquisitions

        for key, x in acquisitions(out).items():
            typer.echo(f"{key:8} looks next at x = {x:.3f}")
    except ModuleNotFoundError as error:
        _fail(f"pictures need {error.name}: pip install 'optpair[demo]'")
    except OSError as error:
        _fail(str(error))


if __name__ == "__main__":
    app()
