"""The page of the benchmarks, and every figure on it, from the rows on file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from optpair.bench import analysis, experiments
from optpair.bench import rows as module
from optpair.bench.experiments import EXPERIMENTS, Experiment
from optpair.bench.rows import Row

FIGURES = {
    "pictures": ("pictures-densities", "pictures-conditioning", "pictures-queries"),
    "pairs": ("pairs-inference", "pairs-seconds"),
}
HEAD = """# The paper's experiments, reproduced

Written by `optpair bench page` from the rows in `results/`; figures by `make figures`. Nothing here
is typed by hand. An experiment is run, or continued, by the command at its head; `--paper` asks for
as many repetitions as the paper has, `--plan` says how long that takes.

What holds for all of them, unless noted below:

- Tasks are maximised. Every method of a repetition begins with the same D + 1 uniform points and
  meets the same noise; budgets count the evaluations after them.
- Regrets are noiseless. *Inference* regret is at the recommendation, the argmax of the averaged
  posterior mean; *simple* regret is at the best queried point. Optuna and the controls recommend
  their best observed point, as their users would take it; BoTorch the argmax of its posterior mean.
- JES, MES, PES and EI run in the same engine, with the same model, sample paths and maximiser.
  Baselines follow their own papers and are given their best form: EI's incumbent is the best
  posterior mean, MES uses noiseless variances. `optpair` is what users get: JES with every default,
  hyperparameters marginalised even where the others know them.
- Where hyperparameters are known, Optuna fits its own all the same: it cannot be told.
- Figures show means of log10 regret, floored at 1e-8, with a band of standard errors, and medians
  dotted. Seconds an ask are those of a busy machine: `optpair bench speed` measures speed.
"""
RUNTIME = """## `runtime`

**The paper** (Table 1, seconds an iteration on its authors' machine, 10 sets × 10 pairs, 10,000 raw
candidates, one gradient climb): JES 1.40, 1.50, 1.56; MES 1.03, 1.21, 1.26; PES 17.39, 34.53,
62.92; EI 0.23, 0.30, 0.35 in 2, 4, 6 dimensions.

```sh
optpair bench speed --paper --d 2 --d 4 --d 6 --method jes    # likewise mes, pes, ei
```

The README has our figures for JES, beside BoTorch's.
"""
APPROXIMATION = """## `approximation`

**The paper** (App. “Approximation quality”): moment matching underestimates the truncation's gain,
by about 15 % where there is little truncation and little noise, more where truncation is extreme.

```sh
optpair bench figures approximation
```
"""


def rows_of(experiment: Experiment, results: Path, given: Path | None = None) -> list[Row]:
    """The rows of an experiment on file."""
    path = given or results / f"{experiment.name}.jsonl"
    found = module.read(path).values()
    return [row for row in found if row["experiment"] == experiment.name]


def draw(name: str, given: Path | None, results: Path, folder: Path) -> Iterator[Path]:
    """Draw the figures of an experiment, or all; the files, as they are drawn."""
    from optpair.bench import figures, sketches

    if name in ("approximation", "all"):
        yield sketches.approximation(folder)
    if name == "approximation":
        return
    for experiment in EXPERIMENTS.values() if name == "all" else [experiments.get(name)]:
        rows = rows_of(experiment, results, given)
        if experiment.name == "pictures":
            yield sketches.densities(folder)
            yield sketches.conditioning(folder)
            last = sketches.queries(experiment, rows, folder)
            if last is not None:
                yield last
        else:
            yield from figures.draw(experiment, rows, folder)


def write(out: Path, results: Path) -> None:
    """Write the page."""
    figures = out.parent / "figures"
    parts = [HEAD, _contents(results)]
    parts += [_section(experiment, results, figures) for experiment in EXPERIMENTS.values()]
    parts += [RUNTIME, APPROXIMATION + _images(("approximation",), figures)]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(parts), encoding="utf-8")


def _contents(results: Path) -> str:
    """What was run so far, and how much the paper ran."""
    lines = [
        "| experiment | repetitions here (of the paper's) | runs on file |",
        "|---|---|---:|",
    ]
    for experiment in EXPERIMENTS.values():
        rows = rows_of(experiment, results)
        done = []
        for cell in experiment.cells:
            own = analysis.of_task(rows, cell.task)
            names = analysis.methods_of(own, experiment)
            counts = [len(analysis.final(own, name, "simple")) for name in names] or [0]
            done.append((_range(counts), cell.paper_repetitions))
        shown = ", ".join(dict.fromkeys(f"{d} (of {p})" if p else d for d, p in done))
        lines.append(f"| [`{experiment.name}`](#{experiment.name}) | {shown} | {len(rows)} |")
    return "\n".join(lines) + "\n"


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low}–{high}"


def _section(experiment: Experiment, results: Path, figures: Path) -> str:
    rows = rows_of(experiment, results)
    parts = [
        f"## `{experiment.name}`",
        f"{experiment.title}.",
        f"**The paper.** {experiment.paper}",
    ]
    if experiment.paper.startswith("Not in the paper"):
        parts[-1] = experiment.paper
    parts.append(f"```sh\noptpair bench run {experiment.name} --workers 2\n```")
    names = FIGURES.get(experiment.name) or tuple(
        f"{experiment.name}-{k}" for k in experiment.kinds
    )
    if not rows:
        parts.append("**Not run yet.**")
        names = tuple(name for name in names if name.startswith("pictures-"))
    elif experiment.name != "pictures":
        for kind in experiment.kinds:
            parts.append(f"### {analysis.KIND_NAMES[kind].capitalize()}")
            parts.append(analysis.markdown(rows, experiment, kind).strip())
    parts.append(_images(names, figures))
    if experiment.notes:
        parts.append("Differences from the paper:")
        parts.append("\n".join(f"- {note}" for note in experiment.notes))
    return "\n\n".join(filter(None, parts)) + "\n"


def _images(names: tuple[str, ...], figures: Path) -> str:
    there = [name for name in names if (figures / f"{name}.png").exists()]
    return "\n\n".join(f"![{name}]({figures.name}/{name}.png)" for name in there)
