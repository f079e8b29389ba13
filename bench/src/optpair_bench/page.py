"""Pages of the benchmarks, and every figure on them, from the rows on file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from optpair.runtime.shapes import Float
from optpair_bench import prose, tasks
from optpair_bench.analysis import arena, claims, overall, statistics
from optpair_bench.figures import measures
from optpair_bench.methods import OURS
from optpair_bench.running import experiments
from optpair_bench.running.experiments import EXPERIMENTS, Experiment
from optpair_bench.running.rows import Row, read
from optpair_bench.timing.report import PAPER_SECONDS

FIGURES = {
    "pictures": ("pictures-densities", "pictures-conditioning", "pictures-queries"),
    "pairs": ("pairs-inference", "pairs-seconds"),
}
ALT = {
    "together": "How far other libraries are above optpair in log10 inference regret, task by task",
    "pictures-densities": "A belief about a function of one variable, and p(x*), p(f*), p(x*, f*)",
    "pictures-conditioning": "The two steps of conditioning on an optimal pair, and their worth",
    "pictures-queries": "Where four methods looked on one GP sample",
    "pairs-seconds": "Seconds per ask against the number of optimal pairs",
    "approximation": "Moment-matched gain over exact gain, by noise and truncation",
}
TABLE1 = "speed-table1.json"
BACK = "How it was run, and all tasks together: [the paper's experiments](../{}).\n"
FOLDER = "experiments"  # of the pages, one per experiment
SHARES, QUANTILES = (1e-4, 1e-2, 0.1, 0.5, 0.9), (0.99, 0.9, 0.5, 0.1, 1e-2, 1e-6)


def rows_of(experiment: Experiment, results: Path, given: Path | None = None) -> list[Row]:
    """The rows of an experiment on file."""
    path = given or results / f"{experiment.name}.jsonl"
    found = read(path).values()
    return [row for row in found if row["experiment"] == experiment.name]


def draw(name: str, given: Path | None, results: Path, folder: Path) -> Iterator[Path]:
    """Draw the figures of an experiment, or all; the files, as they are drawn."""
    from optpair_bench.figures import paper, regret

    if name in ("approximation", "all"):
        yield paper.approximation(folder)
    if name == "approximation":
        return
    if name in ("together", "all"):
        whole = regret.together(_summed(results), OURS, folder)
        if whole is not None:
            yield whole
    if name == "together":
        return
    for experiment in experiments.ON_PAGE if name == "all" else [experiments.get(name)]:
        rows = rows_of(experiment, results, given)
        if experiment.name == "pictures":
            yield paper.densities(folder)
            yield paper.conditioning(folder)
            last = paper.queries(experiment, rows, folder)
            if last is not None:
                yield last
        else:
            yield from regret.draw(experiment, rows, folder)


def _summed(results: Path) -> list[Row]:
    """The rows of all experiments whose tasks are summed up."""
    return [row for name in experiments.SUMMED for row in rows_of(EXPERIMENTS[name], results)]


def write(out: Path, results: Path) -> list[Path]:
    """Write the overview, and beside it a page for each experiment; all that was written."""
    figures = out.parent / "figures"
    every = {experiment.name: rows_of(experiment, results) for experiment in experiments.ON_PAGE}
    rest = {"runtime": _runtime(results / TABLE1), "approximation": _approximation(figures)}
    parts = [prose.HEAD, _contents(every, rest), prose.RULES, _together(every, figures)]
    pages = {out: "\n".join(filter(None, parts))}
    own = {name: _section(EXPERIMENTS[name], rows, figures) for name, rows in every.items()} | rest
    answers = rows_of(EXPERIMENTS["answers"], results)
    if answers:
        own["answers"] = prose.ANSWERS + arena.markdown(answers, OURS).partition("\n\n")[2]
    for name, text in own.items():
        pages[out.parent / FOLDER / f"{name}.md"] = f"{text}\n{BACK.format(out.name)}"
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(starred(text), encoding="utf-8")
    return list(pages)


def starred(text: str) -> str:
    """Markdown that keeps the stars of x* and f*; code is left as it is."""
    pieces = text.split("`")
    pieces[::2] = [re.sub(r"(?<=\b[fx])\*", r"\\*", piece) for piece in pieces[::2]]
    return "`".join(pieces)


def _contents(every: Mapping[str, list[Row]], rest: Mapping[str, str]) -> str:
    """What was run so far, how much the paper ran, and what became of its claims."""
    lines = [
        "| experiment | repetitions (of the paper's) | runs | the paper's claims, task by task |",
        "|---|---|---:|---|",
    ]
    for name, rows in every.items():
        experiment = EXPERIMENTS[name]
        done: dict[str, list[str]] = {}
        for cell in experiment.cells:
            own = statistics.of_task(rows, cell.task, cell.evaluations)
            names = statistics.methods_of(own, experiment)
            counts = [len(statistics.final(own, method, "simple")) for method in names] or [0]
            of = f" (of {cell.paper_repetitions})" if cell.paper_repetitions else ""
            done.setdefault(f"{_range(counts)}{of}", []).append(statistics.task_label(cell.task))
        shown = next(iter(done)) if len(done) == 1 else _by_task(done)
        if not rows:
            shown = "not run yet"
        found = claims.tally(experiment, rows) or ("" if experiment.paper else "not in the paper")
        lines.append(f"| [`{name}`]({FOLDER}/{name}.md) | {shown} | {len(rows)} | {found} |")
    for name, text in rest.items():
        found = claims.words({v: text.count(f"**{v}**") for v in ("agrees", "disagrees")})
        lines.append(f"| [`{name}`]({FOLDER}/{name}.md) | | | {found or 'not run yet'} |")
    return "\n".join(lines) + "\n"


def _by_task(done: dict[str, list[str]]) -> str:
    return "; ".join(f"{', '.join(names)}: {count}" for count, names in done.items())


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low}–{high}"


def _together(every: Mapping[str, list[Row]], figures: Path) -> str:
    """All tasks together: beside what users get or, as long as that was not run, beside JES.

    Empty where there are not two tasks to sum up.
    """
    rows = [row for name in experiments.SUMMED for row in every[name]]
    there = {row["method"] for row in rows}
    reference = next((name for name in (OURS, "jes") if name in there), None)
    if reference is None or len(overall.blocks(rows, reference, overall.BUDGETS[-1])) < 2:
        return ""
    text = "## All tasks together\n\n```sh\noptpair bench summary\n```\n\n"
    if reference != OURS:
        text = text.replace("summary", f"summary --to {reference}")
        text += (
            "**What users get, `optpair`, was not run yet**: hyperparameters are known to the "
            "methods below.\n\n"
        )
    image = _images(("together",), figures).replace("](../", "](")
    parts = [text + overall.markdown(rows, reference).rstrip(), image]
    return "\n\n".join(filter(None, parts)) + "\n"


def _section(experiment: Experiment, rows: Sequence[Row], figures: Path) -> str:
    name = experiment.name
    where = f" In the paper: {experiment.paper}." if experiment.paper else " Not in the paper."
    about = f"Experiment `{name}`.{where} {prose.ABOUT.get(name, '')}".rstrip()
    parts = [f"# {experiment.title}", about]
    parts.append(f"```sh\noptpair bench run {name} --workers 2\n```")
    images = FIGURES.get(name) or tuple(f"{name}-{kind}" for kind in experiment.kinds)
    if not rows:
        parts += ["**Not run yet.**", claims.markdown(experiment, rows)]
        images = tuple(image for image in images if image.startswith("pictures-"))
    elif name == "pictures":
        parts += [_looks(experiment, rows), _why(name)]
    else:
        parts += [claims.markdown(experiment, rows), _why(name)]
    parts.append(_images(images, figures, experiment))
    if rows and name != "pictures":
        parts += [_table(experiment, rows, kind) for kind in experiment.kinds]
    if experiment.notes:
        parts.append("Differences from the paper:" if experiment.paper else "To know:")
        parts.append("\n".join(f"- {note}" for note in experiment.notes))
    return "\n\n".join(filter(None, parts)) + "\n"


def _why(name: str) -> str:
    return f"**Why.** {prose.WHY[name]}" if name in prose.WHY else ""


def _table(experiment: Experiment, rows: Sequence[Row], kind: experiments.Kind) -> str:
    """A table that is folded away."""
    title = f"{statistics.KIND_NAMES[kind].capitalize()}, method by method"
    table = statistics.markdown(rows, experiment, kind).strip()
    return f'<details markdown="1"><summary>{title}</summary>\n\n{table}\n\n</details>'


def _images(names: tuple[str, ...], figures: Path, experiment: Experiment | None = None) -> str:
    lines = []
    for name in names:
        if (figures / f"{name}.png").exists():
            alt = ALT.get(name)
            if alt is None and experiment is not None:
                kind = experiments.check_kind(name.removeprefix(f"{experiment.name}-"))
                alt = f"{experiment.title}: {statistics.KIND_NAMES[kind]} against evaluations"
            lines.append(f"![{alt}](../{figures.name}/{name}.png)")
    return "\n\n".join(lines)


def _looks(experiment: Experiment, rows: Sequence[Row]) -> str:
    """Where each method looked on the one task."""
    task = tasks.make("gp2", 0)
    land = measures.Landscape.of(task)
    count = len(land.peaks)
    lines = [
        f"| method | near how many of the {count} highest peaks | trials near the optimum | "
        "median distance of trials around it | trials in the lower half of values | "
        "log10 inference regret |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    found = {row["method"]: row for row in rows if "queries" in row and row["seed"] == 0}
    for name in statistics.methods_of(rows, experiment):
        if name in found:
            one = measures.looks(found[name], land, task)
            end = statistics.final([found[name]], name, "inference")[0]
            cells = [statistics.label(name), str(one.peaks), f"{one.near:.0%}"]
            distance = "–" if np.isnan(one.distance) else f"{one.distance:.3f}"
            cells += [distance, f"{one.poor:.0%}", statistics.number(end, 2)]
            lines.append(f"| {' | '.join(cells)} |")
    missing = [statistics.label(name) for name in experiment.methods if name not in found]
    text = "\n".join(lines) + (
        f"\n\nNear is within {measures.NEAR:g}, half of the length scale; around, within "
        f"{measures.AROUND:g}."
    )
    return text + (f" **Not run yet:** {', '.join(missing)}." if missing else "")


def _runtime(path: Path) -> str:
    """The paper's Table 1 beside ours."""
    if not path.exists():
        return f"{prose.RUNTIME}\n**Not run yet.**\n"
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    plans = report["plans"]
    methods = [plans[0]["plan"]["method"], *plans[0]["plan"]["beside"]]
    head = ["seconds (ratio to JES)", *(f"{statistics.label(m)}" for m in methods)]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * len(methods)]
    for plan in plans:
        d = plan["plan"]["dimensions"]
        means = [float(np.mean(ask["seconds"])) for ask in plan["asks"][: len(methods)]]
        paper = [PAPER_SECONDS[m].get(d) for m in methods]
        theirs = ["" if p is None or paper[0] is None else _ratio(p, paper[0]) for p in paper]
        lines.append(f"| {d}-D, the paper | {' | '.join(theirs)} |")
        ours = [_ratio(mean, means[0]) for mean in means]
        lines.append(f"| {d}-D, here | {' | '.join(ours)} |")
    claims_here = _runtime_claims(methods, plans)
    asks = len(plans[0]["asks"][0]["seconds"])
    cores = "one core" if report["cores"] == 1 else f"{report['cores']} cores"
    text = (
        f"Means of {asks} warm asks on {cores} of this machine; the paper's are of its authors', "
        "over 100 runs of 100 iterations. Sampling of hyperparameters is not counted in either."
    )
    parts = [prose.RUNTIME.rstrip(), claims_here, _why("runtime"), "\n".join(lines), text]
    return "\n\n".join(filter(None, parts)) + "\n"


def _runtime_claims(methods: Sequence[str], plans: Sequence[Mapping[str, Any]]) -> str:
    """What the paper says of Table 1, beside ratios of mean seconds."""

    def ratios(name: str) -> list[float]:
        at = methods.index(name)
        means = [[float(np.mean(ask["seconds"])) for ask in plan["asks"]] for plan in plans]
        return [mean[at] / mean[0] for mean in means]

    claimed: tuple[tuple[str, str, float, float], ...] = (
        ("JES is only marginally slower than MES (within a factor of 1.5).", "mes", 1 / 1.5, 1.5),
        ("JES is at least ten times as fast as PES.", "pes", 10.0, np.inf),
    )
    lines = ["| the paper says | seen here | |", "|---|---|---|"]
    for says, name, least, most in claimed:
        if name in methods:
            found = ratios(name)
            word = "agrees" if least <= min(found) and max(found) <= most else "disagrees"
            shown = " to ".join(f"{r:.1f}" for r in dict.fromkeys((min(found), max(found))))
            seen = f"an ask of {statistics.label(name)} takes {shown} times one of JES"
            lines.append(f"| {says} | {seen} | **{word}** |")
    return "\n".join(lines) if len(lines) > 2 else ""


def _ratio(seconds: float, first: float) -> str:
    return f"{seconds:.2f} ({seconds / first:.2g})"


def _approximation(figures: Path) -> str:
    """The grid in numbers, and what the paper says of it."""
    ratio = measures.approximation_ratio(np.array(SHARES), np.array(QUANTILES))
    lines = [
        "| truncation quantile Φ(β) | " + " | ".join(f"noise {s:.2g}" for s in SHARES) + " |",
        "|---|" + "---:|" * len(SHARES),
    ]
    for quantile, line in zip(QUANTILES, ratio, strict=True):
        lines.append(f"| {quantile:g} | " + " | ".join(f"{r:.3f}" for r in line) + " |")
    claim = ["| the paper says | seen here | |", "|---|---|---|"]
    for says, seen, holds in _approximation_claims(ratio):
        claim.append(f"| {says} | {seen} | **{'agrees' if holds else 'disagrees'}** |")
    parts = [prose.APPROXIMATION.rstrip(), "\n".join(claim), _why("approximation")]
    parts += [_images(("approximation",), figures), "Moment-matched gain over exact gain:"]
    return "\n\n".join([*filter(None, parts), "\n".join(lines)]) + "\n"


def _approximation_claims(ratio: Float[np.ndarray, "b a"]) -> list[tuple[str, str, bool]]:
    """What the paper says, what is seen on the grid, and whether that agrees."""
    little = ratio[:2, :3]  # Φ(β) of 0.9 and more, noise of a tenth and less
    mild, extreme = ratio[1, 0], ratio[-1, 0]
    return [
        (
            "Moment matching never sees more than the exact gain.",
            f"at most {ratio.max():.3f} of it",
            bool(ratio.max() <= 1),
        ),
        (
            "It misses about 15 % where there is little truncation and little noise.",
            f"{_missed(float(little.mean()))} on average, {_missed(little.max())} to "
            f"{_missed(little.min())}, where Φ(β) ≥ 0.9, noise ≤ 0.1",
            bool(0.8 <= little.mean() <= 0.9),
        ),
        (
            "It misses more where truncation is extreme and noise low.",
            f"{_missed(extreme)} at Φ(β) = 10⁻⁶, {_missed(mild)} at 0.9, at a noise of 10⁻⁴",
            bool(extreme < mild),
        ),
    ]


def _missed(ratio: float) -> str:
    return f"{100 * (1 - ratio):.0f} %"
