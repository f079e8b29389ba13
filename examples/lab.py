"""Experiments by hand: one at a time, each written down at once, over many days.

    python examples/lab.py            # last year's file, and two days on a simulated reaction
    python examples/lab.py --by-hand  # you carry them out, and type in what you measured
    python examples/lab.py --by-hand --table mine.csv  # after what you have measured before

Leave it at any time. What was told, and the experiment that is out, are in the notebook
`lab.json`; the next run goes on from there, with the same experiments as if you had stayed.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean

from optpair import Float, Int, Optimizer, Space

SPACE = Space(
    {
        "catalyst": Float(0.1, 10.0, log=True, digits=2),  # mol %, as it can be weighed
        "temperature": Int(20, 80, step=5),  # °C, what the bath can be set to
    }
)
SPREAD = 2.0  # % of yield: the standard deviation of one measurement
Measure = Callable[[Mapping[str, float]], list[float]]


def by_hand(params: Mapping[str, float]) -> list[float]:
    """The yields that a person types in; none where the experiment failed."""
    return [float(word) for word in input("  yields in %, or Enter if it failed: ").split()]


def simulated(params: Mapping[str, float]) -> list[float]:
    """Two noisy yields, and a third where they disagree; a hot bath decomposes the product."""
    decades, degrees = math.log10(params["catalyst"] / 2), params["temperature"] - 55
    if degrees > 15:
        return []
    dice = random.Random(repr(sorted(params.items())))
    truth = 80 * math.exp(-(decades**2) - (degrees / 30) ** 2)
    first, second, third = (dice.gauss(truth, SPREAD) for _ in range(3))
    return [first, second] if abs(first - second) < 2 * SPREAD else [first, second, third]


def write_last_year(table: Path) -> None:
    """Twenty rows as a colleague left them: some between our steps, one without a value."""
    dice = random.Random(0)
    lines = ["catalyst (mol %),temperature (°C),yield,failed,operator"]
    for i in range(20):
        params = {"catalyst": round(10 ** dice.uniform(-1, 1), 3), "temperature": 22 + 3 * i}
        yields = simulated(params)
        shown = f"{fmean(yields):.1f}" if yields and i != 5 else ""
        cells = [*params.values(), shown, "" if yields else "yes", "Ann" if i % 3 else "Bob"]
        lines.append(",".join(map(str, cells)))
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")


def start(table: Path | None) -> Optimizer:
    """A new notebook, which knows what was measured before."""
    opt = Optimizer(SPACE, direction="maximize", seed=4)
    if table is not None:
        print(f"{table.name}: {opt.read_csv(table, value='yield')}")
    return opt


def day(notebook: Path, measure: Measure, experiments: int, table: Path | None) -> None:
    """Carry out experiments, and save after every change."""
    opt = Optimizer.load(notebook) if notebook.exists() else start(table)
    for _ in range(experiments):
        out = [trial for trial in opt.trials if trial.state == "pending"]  # left over from before
        trial = out[0] if out else opt.ask()
        opt.save(notebook)
        print(f"experiment {trial.id}: {trial.params['catalyst']:.2g} mol %", end=", ")
        print(f"{trial.params['temperature']} °C")
        yields = measure(trial.params)
        if yields:
            opt.tell(trial, yields, noise_var=SPREAD**2)
            print(f"  {fmean(yields):.1f} % from {len(yields)} measurements")
        else:
            opt.tell(trial, failed=True, reason="no yield")
            print("  failed: it teaches to keep away")
        opt.save(notebook)
    print(opt.recommend())


def main(notebook: Path, by_hand_: bool, experiments: int, table: Path | None) -> None:
    """One day by hand, or two simulated ones."""
    if table is None and not by_hand_:
        table = notebook.with_name("last-year.csv")
        write_last_year(table)
    try:
        for _ in range(1 if by_hand_ else 2):
            day(notebook, by_hand if by_hand_ else simulated, experiments, table)
    except (EOFError, KeyboardInterrupt):
        print("\nUntil tomorrow: the notebook has it.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--by-hand", action="store_true", dest="by_hand_")
    parser.add_argument("--experiments", type=int, default=6, help="a day")
    parser.add_argument("--table", type=Path, help="CSV of what was measured before")
    parser.add_argument("--notebook", type=Path, default=Path("lab.json"))
    main(**vars(parser.parse_args()))
