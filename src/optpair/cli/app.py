"""The command line: studies (`optpair run` and its kin), `optpair demo`, and what others add.

Everything heavy is imported when a command runs, so that `--help` answers at once. A distribution
adds a command by an entry point of the group `optpair.commands` that names a Typer app.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from optpair.cli import tables, told, watching, words
from optpair.cli.common import File, Json
from optpair.cli.common import aside as _aside
from optpair.cli.common import show as _show
from optpair.cli.common import study_of as _study
from optpair.cli.exit_codes import ERROR, INTERRUPTED, NOTHING_YET, USAGE, say
from optpair.cli.exit_codes import fail as _fail
from optpair.cli.help_texts import PlainApp
from optpair.runtime.stderr import keep_usable

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


app = PlainApp(
    cls=Commands,
    help="Bayesian optimisation that tells you where the optimum is, what it is worth, and how "
    "sure it is.",
)


NEGATIVE = {"ignore_unknown_options": True}
"""What lets VALUE be -0.5."""

NoiseVar = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VARIANCE",
        help="The variance of the value's noise; with several outcomes, NAME=VARIANCE for each.",
    ),
]
Actual = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="What was really run, of a parameter that differs from what was asked for.",
    ),
]
Cost = Annotated[
    float | None,
    typer.Option(
        help="What it cost, in any unit, as long as it is always the same.", metavar="COST"
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Option("--context", metavar="NAME=VALUE", help="A value for each context of the study."),
]
Failed = Annotated[bool, typer.Option("--failed", help="It gave no value.")]
Message = Annotated[str | None, typer.Option(help="Why it failed.", metavar="TEXT")]


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
    """What every command begins with."""
    keep_usable()


@app.command()
def demo() -> None:
    """Tune a real, noisy model, and show what is found."""
    try:
        from optpair.demo import main as show

        show()
    except ModuleNotFoundError as error:
        _fail(f"the demo needs {error.name}: pip install 'optpair[demo]'")


@app.command()
def run(
    file: File,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes on this machine.", metavar="N")
    ] = 1,
    seconds: Annotated[
        float | None,
        typer.Option(help="Start no new trial after this many seconds.", metavar="SECONDS"),
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going", help="Continue even if the first trials all fail in the same way."
        ),
    ] = False,
    worker_of: Annotated[int | None, typer.Option(hidden=True)] = None,
    stops: Annotated[int | None, typer.Option(hidden=True)] = None,
    context: Given = None,
    json: Json = False,
) -> None:
    """Run a study until all its evaluations are made.

    Run it again to continue, or on more machines that share the storage. Ctrl-C lets the running
    trial end; a second one abandons it. `optpair pause`, `resume` and `stop` reach every worker of
    the study, on all machines.

    Exit codes: 0 if all evaluations were made or are out by hand, or if the time or the budget is
    used up; 1 for an error; 3 if no trial gave a value, or the first ones all failed in the same
    way; 130 if interrupted or stopped.
    """
    if seconds is not None and not 0 < seconds < float("inf"):
        _fail(f"--seconds must be a finite number above 0, not {seconds}", USAGE)
    with _study(file) as study:
        from optpair.studies import commands

        with _aside(json):
            ran = commands.run(
                study,
                workers,
                say,
                worker_of,
                seconds=seconds,
                keep_going=keep_going,
                stops=stops,
                context=context or (),
            )
        if worker_of is None:
            _close(study, ran, json, context or [])
        if ran.ending.stopped:
            raise typer.Exit(INTERRUPTED)


def _close(study: StudyFile, ran: Ran, json: bool, context: list[str]) -> None:
    """Show what a run has come to. A storage that is away now undoes no evaluation."""
    from optpair.studies import commands, config, storage

    later = f"run optpair recommend {study.path.name} when the storage is back"
    try:
        found = commands.status(study, ran.study)
    except (config.StudyError, storage.AwayError) as error:
        if not ran.finished:
            _fail(str(error), INTERRUPTED if ran.ending.stopped else ERROR)
        problem = f"all evaluations were made; the recommendation cannot be read: {error}; {later}"
        _show({"study": study.name, "recommendation": None, "problem": problem}, json, problem)
        return
    valued, kind = found["counts"].get("told", 0), ran.ending.kind
    over = found["over"] is not None
    complete = found["ended"] >= study.evaluations or over or kind in ("time", "spent")
    best, text = None, ""
    if complete and valued:
        try:
            best = commands.recommend(study, ran.study, context=context)
            text = best.pop("text")
        except storage.AwayError as error:
            text = f"the recommendation cannot be read: {error}; {later}"
    shown = {**found, "ending": kind, "recommendation": best}
    shown |= {"problem": text} if text and not best else {}
    _show(shown, json, "\n".join(filter(None, [words.status(found, best is None), text])))
    if (complete or kind == "alike") and not valued:
        raise typer.Exit(NOTHING_YET)
    left = study.evaluations - found["ended"] - found["counts"].get("by hand", 0)
    if left > 0 and kind == "complete" and not complete:
        _fail("the workers ended before all evaluations were made; run this again")


@app.command()
def ask(
    file: File,
    n: Annotated[
        int | None,
        typer.Option(
            "--n", min=1, max=1000, help="A plate: this many trials, chosen together.", metavar="N"
        ),
    ] = None,
    context: Given = None,
    json: Json = False,
) -> None:
    """Suggest a trial for you to run, or --n of them at once.

    Then `optpair tell` its result, by the trial's number.
    """
    with _study(file) as study:
        from optpair.studies import commands

        found = commands.ask(study, n or 1, context or ())
        text = "\n".join(f"trial {row['trial']}: {words.asked(row, study.space)}" for row in found)
        _show(found[0] if n is None else found, json, text)


@app.command(context_settings=NEGATIVE)
def tell(
    file: File,
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TRIAL VALUE",
            help="The trial's number, as `ask` gave it, and its value, or several that were "
            "measured in turn; with --params, only the value. With several outcomes, NAME=VALUE "
            "for each that was measured.",
        ),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A point of your own instead of a trial's number; repeat for every parameter.",
        ),
    ] = None,
    actual: Actual = None,
    noise_var: NoiseVar = None,
    cost: Cost = None,
    failed: Failed = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Forget the trial.")] = False,
    message: Message = None,
    notes: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEXT", help="What to remember of the trial; repeatable."),
    ] = None,
    json: Json = False,
) -> None:
    """Tell the result of a trial: VALUE, --failed, or --cancel.

    With --params, tell the result of a point of your own, which was not suggested.
    """
    rest = list(given or [])
    trial = None if params else _whole("TRIAL", rest)
    values = told.numbers("VALUE", rest)
    if [bool(values), failed, cancel].count(True) != 1:
        _fail("give one of VALUE, --failed and --cancel", USAGE)
    if params and cancel:
        _fail("--cancel is for a trial that was asked for, not for a point of your own", USAGE)
    if notes and cancel:
        _fail("--notes goes with VALUE or --failed", USAGE)
    if actual and (params or cancel):
        _fail("--actual is for a trial that was asked for, with VALUE or --failed", USAGE)
    if cost is not None and (cancel or not 0 < cost < float("inf")):
        _fail(f"--cost must be a finite number above 0, with VALUE or --failed, not {cost}", USAGE)
    noise = told.variances(noise_var, values, failed, message)
    with _study(file) as study:
        from optpair.studies import commands

        said = commands.Told(values, noise, message, cost, told.texts("--notes", notes or ()))
        if trial is None:
            number = int(rest[0]) if len(rest) > 1 and rest[0].isdecimal() else None
            found = commands.tell_own(study, params or [], said, number)
        elif cancel:
            found = commands.cancel(study, trial)
        else:
            found = commands.tell(study, trial, said, actual or ())
        _show(found, json, words.told(found))


@app.command(context_settings=NEGATIVE)
def revise(
    file: File,
    trial: Annotated[int, typer.Argument(help="The trial's number.", min=0, metavar="TRIAL")],
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VALUE",
            help="The right value, or values; with several outcomes, NAME=VALUE for each.",
        ),
    ] = None,
    actual: Actual = None,
    noise_var: NoiseVar = None,
    failed: Failed = False,
    message: Message = None,
    json: Json = False,
) -> None:
    """Correct the result of a trial: VALUE, or --failed.

    The storage keeps what was told before; every command, worker and page of optpair uses the
    correction. With several outcomes, those that are not given count as not measured.
    """
    values = told.numbers("VALUE", given or [])
    if bool(values) == failed:
        _fail("give one of VALUE and --failed", USAGE)
    noise = told.variances(noise_var, values, failed, message)
    with _study(file) as study:
        from optpair.studies import commands

        found = commands.revise(study, trial, commands.Told(values, noise, message), actual or ())
        _show(found, json, words.told(found))


def _whole(name: str, rest: list[str]) -> int:
    """The first word, which must be a trial's number."""
    if not rest:
        _fail(f"{name} is missing; or give a point of your own with --params", USAGE)
    if not rest[0].isdecimal():
        _fail(f"{name} must be an int of at least 0, not {rest[0]!r}", USAGE)
    return int(rest.pop(0))


@app.command()
def recommend(
    file: File,
    prefer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=WEIGHT", help="With several objectives: the compromise for these weights."
        ),
    ] = None,
    near: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="With several objectives: the compromise closest to these values.",
        ),
    ] = None,
    context: Given = None,
    json: Json = False,
) -> None:
    """Show the best predicted point, with its 95 % interval.

    With constraints, it comes with the probability of meeting them. With several objectives, the
    best compromises are shown, or one of them. Exit code 3: no trial has a value yet.
    """
    if prefer and near:
        _fail("give one of --prefer and --near", USAGE)
    weights, values = told.named("--prefer", prefer or []), told.named("--near", near or [])
    with _study(file) as study:
        from optpair.studies import commands

        found = commands.recommend(study, prefer=weights, near=values, context=context or ())
        text = found.pop("text")
        _show(found, json, text)


@app.command()
def report(
    target: watching.Target,
    study: watching.Name = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write it; next to the study file or the saved run by default.",
            metavar="PATH",
        ),
    ] = None,
    context: Given = None,
    json: Json = False,
) -> None:
    """Write a report: one HTML file that needs nothing else."""
    if watching.is_study_file(target):
        with _study(Path(target)) as file:
            from optpair.studies import commands

            try:
                found = commands.report(file, out, context or ())
            except OSError as error:
                _fail(str(error))
    else:
        if context:
            _fail("--context is for a study file", USAGE)
        found = watching.report(target, study, out)
    _show(found, json, f"{found['path']}\n{found['verdict']}")


@app.command()
def status(file: File, json: Json = False) -> None:
    """Show how far a study is: trials, failures, what is out."""
    with _study(file) as study:
        from optpair.studies import commands

        found = commands.status(study)
        _show(found, json, words.status(found))


app.command()(tables.export)
app.command("import")(tables.import_)
for command in (watching.watch, watching.pause, watching.resume, watching.stop):
    app.command()(command)


if __name__ == "__main__":
    app()
