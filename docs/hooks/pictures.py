"""Pictures of the site that are photographs: run `python docs/hooks/pictures.py`, with Chromium.

Every example that has an optimiser leaves the top of its report as `docs/gallery/NAME.png`, and as
on a phone as `NAME-phone.png`; that of `examples/report.py` is also `docs/report.png`, dark and as
on a phone. `docs/watch.png` is the live page of a study, in the same four ways.
"""

from __future__ import annotations

import contextlib
import io
import math
import random
import re
import runpy
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import optuna
from PIL import Image

from optpair import Optimizer
from optpair.integrations.optuna.attributes import OUTPUT, WORKER
from optpair.studies import config, storage
from optpair.studies.samplers import make_sampler
from optpair.watch import page as live
from optpair.watch.boards import Board, Pace
from optpair.watch.stored import Stored

ROOT = Path(__file__).parents[2]
WITHOUT = ("dask_optuna", "ray_tune")  # clusters
WIDTH, HEIGHT, PHONE = 1200, 760, 390
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
DARK = "--blink-settings=preferredColorScheme=0"


def shoot(page: Path, out: Path, width: int, height: int, *, dark: bool = False) -> None:
    """A page's top, in few colours; a width of a phone through a frame."""
    with tempfile.TemporaryDirectory() as folder:
        seen = Path(folder) / "frame.html"
        seen.write_text(
            f'<body style="margin:0"><iframe src="{page.as_uri()}" '
            f'style="border:0;width:{width}px;height:{height}px"></iframe>',
            encoding="utf-8",
        )
        shot = Path(folder) / "shot.png"
        subprocess.run(
            [
                *("chromium", *FLAGS, f"--user-data-dir={folder}/profile"),
                *([DARK] if dark else []),
                *(f"--window-size={max(width, 500)},{height}", "--virtual-time-budget=3000"),
                *("--force-device-scale-factor=1.5", f"--screenshot={shot}", seen.as_uri()),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
        picture = Image.open(shot).crop((0, 0, round(1.5 * width), round(1.5 * height)))
        out.parent.mkdir(parents=True, exist_ok=True)
        picture.convert("RGB").quantize(128).save(out, optimize=True)


def searched(example: Path) -> Optimizer | None:
    """Run an example in a folder of its own; the last optimiser that it told something."""
    made: list[Optimizer] = []
    begin = Optimizer.__init__

    def noted(self: Optimizer, *args: object, **kwargs: object) -> None:
        made.append(self)
        begin(self, *args, **kwargs)  # type: ignore[arg-type]

    Optimizer.__init__ = noted  # type: ignore[method-assign]
    arguments, sys.argv = sys.argv, [str(example)]
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.chdir(folder),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            runpy.run_path(str(example), run_name="__main__")
    finally:
        sys.argv, Optimizer.__init__ = arguments, begin  # type: ignore[method-assign]
    return next((o for o in reversed(made) if any(t.state == "told" for t in o.trials)), None)


STUDY = """
[study]
name = "tiny transformer"
evaluations = 60

[objective]
command = ["python", "train.py"]

[space]
lr = { float = [1e-5, 1.0], log = true }
width = { int = [16, 1024], log = true }
opt = { categories = ["adam", "sgd"] }
"""


def watched(folder: Path) -> str:
    """The live page of a study with 40 trials: two are running and some have failed."""
    path, rng = folder / "study.toml", random.Random(0)
    path.write_text(STUDY, encoding="utf-8")
    file = config.load(path)
    study = storage.open_study(file, make_sampler(file))
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)

    def objective(trial: optuna.Trial) -> float:
        lr = trial.suggest_float("lr", 1e-5, 1.0, log=True)
        width = trial.suggest_int("width", 16, 1024, log=True)
        slow = trial.suggest_categorical("opt", ["adam", "sgd"]) == "sgd"
        if lr > 0.3:
            trial.set_user_attr(OUTPUT, "exit code 1\nRuntimeError: loss is NaN at step 120")
            raise RuntimeError
        miss = (math.log10(lr) + 2) ** 2 / 4 + (math.log2(width) - 8) ** 2 / 20
        return 1 + miss + 0.2 * slow + rng.gauss(0, 0.05)

    study.optimize(objective, n_trials=40, catch=RuntimeError)
    for machine in ("gpu-1:11038", "gpu-2:20417"):
        trial = study.ask(dict(file.space))
        trial.set_user_attr(WORKER, machine)
    source = Stored(file.storage, file.name, file)
    source.place = "postgresql://lab/studies"
    board = Board(source, Pace(0.0), threading.Condition())
    board.look()
    board.ask()
    text = live.one(board, 0, live.Reader("token"), alone=True)
    return re.sub(r"<script>.*?</script>", "", text, flags=re.S)  # which would ask for news


def four_ways(page: Path, name: str, height: int) -> None:
    """A page light and dark, on a desk and on a phone."""
    for dark in (False, True):
        end = "-dark" if dark else ""
        docs = ROOT / "docs"
        shoot(page, docs / f"{name}{end}.png", WIDTH, height, dark=dark)
        shoot(page, docs / f"{name}-phone{end}.png", PHONE, 844, dark=dark)


def main(names: list[str]) -> None:
    """The pictures of these examples, or of all; `watch` is the live page."""
    if not names or "watch" in names:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            page.write_text(watched(Path(folder)), encoding="utf-8")
            four_ways(page, "watch", 860)
    for example in sorted((ROOT / "examples").glob("*.py")):
        if example.stem in WITHOUT or (names and example.stem not in names):
            continue
        optimizer = searched(example)
        if optimizer is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            optimizer.report(page, name=example.stem.replace("_", " "))
            gallery = ROOT / "docs" / "gallery"
            shoot(page, gallery / f"{example.stem}.png", WIDTH, HEIGHT)
            shoot(page, gallery / f"{example.stem}-phone.png", PHONE, 844)
            if example.stem == "report":
                optimizer.report(page, name="A made-up training run")
                four_ways(page, "report", 742)
        print(example.stem)


if __name__ == "__main__":
    main(sys.argv[1:])
