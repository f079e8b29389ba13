"""The command line: studies (`optpair run` and its kin), `optpair demo`, and what others add.

Everything heavy is imported when a command runs, so that `--help` answers at once. A distribution
adds a command by an entry point of the group `optpair.commands` that names a Typer app.
"""

from __future__ import annotations

import json as json_
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from optpair.cli.exit_codes import ERROR, INTERRUPTED, NOTHING_YET, USAGE, say
from optpair.cli.exit_codes import fail as _fail
from optpair.problem.defaults import LARGEST
from optpair.stderr import Outlet, drop, keep_usable

if TYPE_CHECKING:
    from optpair.studies.commands import Ran
    from optpair.studies.config import StudyFile

GROUP = "optpair.commands"
ELSEWHERE = {"bench": "./bench"}
"""Commands of this repository's other distributions, and what is to be installed for them."""


class Commands(TyperGroup):
    """The commands below, and those that other distributions add, imported when asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all of them, ours first."""
        return [*super().list_commands(ctx), *entry_points(group=GROUP).names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; one that is not installed ends with how to install it."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        for added in entry_points(group=GROUP, name=cmd_name):
            command = typer.main.get_command(added.load())
            command.name = cmd_name
            return command
        if cmd_name in ELSEWHERE:
            source = ELSEWHERE[cmd_name]
            _fail(f"{cmd_name} is not installed; in a clone: pip install {source}", USAGE)
        return None


app = typer.Typer(
    cls=Commands,
    help="Bayesian optimisation that tells where the optimum is, what it is worth, and how sure "
    "it is.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)

File = Annotated[Path, typer.Argument(help="The study file.", metavar="STUDY.TOML")]
Json = Annotated[bool, typer.Option("--json", help="JSON, on standard output.")]


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
    keep_usable()


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
        from optpair.studies import commands, config, storage
    except ModuleNotFoundError as error:
        _fail(f"studies need {error.name}: pip install 'optpair[optuna]'")
    try:
        file = config.load(path)
    except config.StudyError as error:
        _fail(str(error))
    try:
        yield file
    except commands.NothingYetError as error:
        _fail(str(error), NOTHING_YET)
    except config.StudyError as error:
        _fail(str(error))
    except storage.AwayError as error:
        _fail(f"{storage.shown(file)} is away: {error}; run this again when it is back")


def _show(data: Any, json: bool, text: str) -> None:
    typer.echo(json_.dumps(data, indent=2) if json else text)


@contextmanager
def _aside(json: bool) -> Iterator[None]:
    """Send what an objective prints, here or in a process of its own, to standard error.

    Standard output is for the JSON.
    """
    if not json:
        yield
        return
    sys.stdout.flush()
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        with Outlet() as outlet, redirect_stdout(outlet):
            yield
    finally:
        try:
            sys.stdout.flush()  # what somebody wrote to it past the redirection
        except OSError:  # standard error does not take it, and it is not for standard output
            drop(1)
            sys.stdout.flush()
        os.dup2(out, 1)
        os.close(out)


@app.command()
def run(
    file: File,
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    worker_of: Annotated[int | None, typer.Option(hidden=True)] = None,
    json: Json = False,
) -> None:
    """Evaluate a study's objective until it has its evaluations.

    Run it again to resume, or on more machines that share the storage. Ctrl-C lets the running
    trial end; a second one abandons it. Exit codes: 0 all evaluations were made, or are out by
    hand, 1 error, 3 none of them gave a value, 130 interrupted.
    """
    with _study(file) as study:
        from optpair.studies import commands

        with _aside(json):
            ran = commands.run(study, workers, say, worker_of)
        if worker_of is None:
            _close(study, ran, json)
        if ran.stopped:
            raise typer.Exit(INTERRUPTED)


def _close(study: StudyFile, ran: Ran, json: bool) -> None:
    """Show what a run has come to. A storage that is away now undoes no evaluation."""
    from optpair.studies import commands, config, storage

    later = f"optpair recommend {study.path.name} shows it when the storage is back"
    try:
        found = commands.status(study, ran.study)
    except (config.StudyError, storage.AwayError) as error:
        if not ran.finished:
            _fail(str(error), INTERRUPTED if ran.stopped else ERROR)
        problem = f"all evaluations were made; the recommendation cannot be read: {error}; {later}"
        _show({"study": study.name, "recommendation": None, "problem": problem}, json, problem)
        return
    told = found["counts"].get("told", 0)
    complete = found["ended"] >= study.evaluations or found["over"] is not None
    best, text = None, ""
    if complete and told:
        try:
            best = commands.recommend(study, ran.study)
            text = best.pop("text")
        except storage.AwayError as error:
            text = f"the recommendation cannot be read: {error}; {later}"
    shown = {**found, "recommendation": best, **({"problem": text} if text and not best else {})}
    _show(shown, json, "\n".join(filter(None, [_status(found, best is None), text])))
    if complete and not told:
        raise typer.Exit(NOTHING_YET)
    left = study.evaluations - found["ended"] - found["counts"].get("by hand", 0)
    if left > 0 and not ran.stopped and not complete:
        _fail("the workers ended before all evaluations were made; run this again")


@app.command()
def ask(
    file: File,
    n: Annotated[
        int | None,
        typer.Option("--n", min=1, max=1000, help="A plate: so many that are good together."),
    ] = None,
    json: Json = False,
) -> None:
    """Suggest a trial for you to run, or --n of them; tell what it gave by its number."""
    with _study(file) as study:
        from optpair.studies import commands

        found = commands.ask(study, n or 1)
        text = "\n".join(f"trial {row['trial']}: {_listed(row['params'])}" for row in found)
        _show(found[0] if n is None else found, json, text)


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
    if value is not None and not abs(value) <= LARGEST:
        _fail(f"VALUE must be a finite number, not {value}; --failed says that it failed", USAGE)
    if (noise_var is not None and value is None) or (message and not failed):
        _fail("--noise-var goes with VALUE, --message with --failed", USAGE)
    if noise_var is not None and not noise_var <= LARGEST:
        _fail(f"--noise-var must be a finite variance, not {noise_var}", USAGE)
    with _study(file) as study:
        from optpair.studies import commands

        outcome = "failed" if failed else "cancelled" if cancel else "told"
        found = commands.tell(study, trial, value, noise_var, outcome, message)
        _show(found, json, f"trial {trial}: {found['state']}")


@app.command()
def recommend(file: File, json: Json = False) -> None:
    """Show the best predicted point, with its 95 % interval. Exit code 3: no value yet."""
    with _study(file) as study:
        from optpair.studies import commands

        found = commands.recommend(study)
        text = found.pop("text")
        _show(found, json, text)


@app.command()
def report(
    file: File,
    out: Annotated[
        Path | None, typer.Option(help="Where the page goes; beside the study file by default.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a page on what was found, one HTML file that needs nothing else."""
    with _study(file) as study:
        from optpair.studies import commands

        try:
            found = commands.report(study, out)
        except OSError as error:
            _fail(str(error))
        _show(found, json, f"{found['path']}\n{found['verdict']}")


@app.command()
def status(file: File, json: Json = False) -> None:
    """Show how many trials ended, how, why the last of them failed, and which are out."""
    with _study(file) as study:
        from optpair.studies import commands

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
        from optpair.studies import commands

        rows = commands.export(study)
        text = json_.dumps(rows, indent=2) + "\n" if json else commands.as_csv(study, rows)
        if out is None:
            sys.stdout.write(text)
            return
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            _fail(str(error))


def _status(found: dict[str, Any], observed: bool = True) -> str:
    counts = ", ".join(f"{n} {state}" for state, n in found["counts"].items()) or "none yet"
    lines = [
        f"study {found['study']} in {found['storage']}, {found['direction']}",
        f"{found['ended']} of {found['evaluations']} evaluations; trials: {counts}",
    ]
    if found["over"]:
        lines.append(f"over: {found['over']}")
    best = found["best_observed"]
    if best is not None and observed:  # a recommendation has it too
        lines.append(
            f"best observed {best['value']:.6g} in trial {best['trial']}: {_listed(best['params'])}"
        )
    lines += [f"failed: trial {row['trial']}: {row['reason']}" for row in found["failures"]]
    lines += [
        f"{row['state']}: trial {row['trial']}, since {row['started']}: {_listed(row['params'])}"
        for row in found["out"]
    ]
    return "\n".join(lines)


def _listed(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in params.items())


if __name__ == "__main__":
    app()
