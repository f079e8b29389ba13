"""Pictures of the site that are photographs: run `python docs/hooks/pictures.py`, with Chromium.

Every example that has an optimiser leaves the top of its report as `docs/gallery/NAME.png`; that of
`examples/report.py` is also `docs/report.png`, dark and as on a phone.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from optpair import Optimizer

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


def main(names: list[str]) -> None:
    """The pictures of these examples, or of all."""
    for example in sorted((ROOT / "examples").glob("*.py")):
        if example.stem in WITHOUT or (names and example.stem not in names):
            continue
        optimizer = searched(example)
        if optimizer is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            optimizer.report(page, name=example.stem.replace("_", " "))
            shoot(page, ROOT / "docs" / "gallery" / f"{example.stem}.png", WIDTH, HEIGHT)
            if example.stem == "report":
                optimizer.report(page, name="A made-up training run")
                docs = ROOT / "docs"
                shoot(page, docs / "report.png", WIDTH, 742)
                shoot(page, docs / "report-dark.png", WIDTH, 742, dark=True)
                shoot(page, docs / "report-phone.png", PHONE, 844)
                shoot(page, docs / "report-phone-dark.png", PHONE, 844, dark=True)
        print(example.stem)


if __name__ == "__main__":
    main(sys.argv[1:])
