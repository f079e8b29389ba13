"""Commands that follow and steer a search: watch, pause, resume, stop; reports of any run."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optpair.cli.common import File, Json, show, study_of
from optpair.cli.exit_codes import ERROR, USAGE, fail

if TYPE_CHECKING:
    from optpair.studies.control import Order
    from optpair.watch.sources import Source

TARGETS = (
    "A study file, the URL of any Optuna storage (or its SQLite file), or the file of a saved run."
)
Target = Annotated[str, typer.Argument(help=TARGETS, metavar="TARGET")]
Name = Annotated[
    str | None, typer.Option("--study", help="Which study of the storage.", metavar="NAME")
]


def watch(
    targets: Annotated[list[str], typer.Argument(help=TARGETS, metavar="TARGET")],
    study: Annotated[
        list[str] | None,
        typer.Option(
            "--study", help="Which studies of the storage; all by default.", metavar="NAME"
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help="The address to serve at. Off loopback, readers need the token too.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="The port; by default 8765, or a free one if it is taken.",
            metavar="PORT",
        ),
    ] = None,
) -> None:
    """Serve a live page of running searches, until Ctrl-C.

    It shows the recommendation, the belief, what is running and why trials failed; from it you can
    pause and stop `optpair run`. Several targets get a card each. Only this machine can reach it,
    unless --host says otherwise, and only with the printed address can anything be paused or
    stopped.
    """
    found = _sources(targets, study or [])
    from optpair.runtime.threads import share_memory
    from optpair.watch.server import PORT, Server

    try:
        try:
            server = Server(found, host, PORT if port is None else port)
        except OSError:
            if port is not None:
                raise
            server = Server(found, host, 0)
    except OSError as error:
        fail(f"cannot serve at {host}, port {port or 'any'}: {error}; choose another --port")
    with suppress(OSError, AttributeError):
        os.nice(10)  # workers on this machine come first
    share_memory()
    with server:
        server.hall.open()
        typer.echo(f"{server.url}\nCtrl-C ends this page; the searches continue.")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
        server.hall.close()


def pause(file: File, json: Json = False) -> None:
    """Pause all workers of a study once their trials end."""
    _order(file, "pause", json)


def resume(file: File, json: Json = False) -> None:
    """Let the workers of a paused study continue."""
    _order(file, "resume", json)


def stop(file: File, json: Json = False) -> None:
    """Stop all workers of a study once their trials end.

    `optpair run` continues from there.
    """
    _order(file, "stop", json)


def _order(file: Path, order: Order, json: bool) -> None:
    with study_of(file) as study:
        from optpair.studies import commands

        found = commands.order(study, order)
        running = found["running"]
        now = {"pause": "is paused", "resume": "continues", "stop": "is stopped"}[order]
        if running and order != "resume":
            trials = "its running trial has" if running == 1 else f"its {running} trials have"
            now = f"will {order} when {trials} ended"
        show(found, json, f"study {study.name} {now}")


def is_study_file(target: str) -> bool:
    """Whether a target is a study file."""
    return "://" not in target and Path(target).suffix == ".toml"


def report(target: str, name: str | None, out: Path | None) -> dict[str, Any]:
    """Write the page of a storage's study, or of a saved run."""
    found = _sources([target], [] if name is None else [name])
    if len(found) > 1:
        names = ", ".join(repr(source.name) for source in found)
        fail(f"{found[0].place} has several studies: {names}; --study says which", USAGE)
    from optpair import report as pages

    beside = Path(target) if "://" not in target else Path(found[0].name.replace("/", "_"))
    path = out or beside.with_suffix(".html")
    try:
        return pages.write(found[0].subject(), path)
    except (OSError, ValueError) as error:
        fail(str(error))


def _sources(targets: list[str], names: list[str]) -> list[Source]:
    """What the targets mean; what is wrong with one becomes an exit code."""
    from optpair.watch.targets import sources

    try:
        return sources(targets, names)
    except ModuleNotFoundError as error:
        fail(f"studies need {error.name}: pip install 'optpair[optuna]'")
    except (ValueError, OSError) as error:
        fail(str(error), ERROR)
