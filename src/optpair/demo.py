"""`optpair demo`: tune a neural network on handwritten digits, with noise you can see.

Every evaluation trains on a few hundred images with a new random seed and a new split, as a hurried
person would: the same settings give a different accuracy each time. The best accuracy seen is then
mostly luck, which is what the recommendation is there to see through. The size of the noise
is inferred; whoever knows it beforehand says `Objective(noise=0.02)`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from optpair import Belief, Categorical, Float, Int, Objective, Result, Space, Trial, minimize

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # the backend must be chosen first

SPACE = Space(
    {
        "learning_rate": Float(1e-3, 0.1, log=True),
        "alpha": Float(1e-4, 10.0, log=True),
        "width": Int(8, 128, log=True),
        "epochs": Int(5, 30),
        "activation": Categorical(["relu", "tanh", "logistic"]),
    }
)
PICTURE = Path("demo-belief.png")
GREY, BLUE, RED, GOLD = "#9aa0a6", "#2a6f97", "#c1121f", "#e09f3e"


class Digits:
    """Accuracy on 100 images after training on 300 others; a new split and seed every time."""

    def __init__(self, seed: int) -> None:
        self._X, self._y = load_digits(return_X_y=True)
        self._seeds = np.random.default_rng(seed)

    def __call__(self, params: Mapping[str, Any]) -> float:
        """Train once, and score."""
        seed = int(self._seeds.integers(2**31))
        X, X_test, y, y_test = train_test_split(
            self._X, self._y, train_size=300, test_size=100, random_state=seed, stratify=self._y
        )
        model = MLPClassifier(
            hidden_layer_sizes=(params["width"],),
            activation=params["activation"],
            alpha=params["alpha"],
            learning_rate_init=params["learning_rate"],
            max_iter=params["epochs"],
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # few epochs are the point
            model.fit(X / 16, y)
        return float(model.score(X_test / 16, y_test))


def main(evaluations: int = 45, repeats: int = 20, seed: int = 0) -> None:
    """Run the demo: search, answer, check of the answer, picture."""
    console = Console()
    console.print(
        f"Tuning a neural network on handwritten digits: {len(SPACE)} parameters, "
        f"{evaluations} noisy evaluations.\n"
    )
    objective = Digits(seed)
    outcomes = {"accuracy": Objective("maximize", bounds=(0, 1))}  # which no accuracy leaves
    result = minimize(
        lambda params: {"accuracy": objective(params)},
        *(SPACE, evaluations),
        outcomes=outcomes,
        seed=seed,
    )
    belief = result.optimizer.belief()
    lucky = result.recommendation.observed
    console.print(f"\nTraining each of the two answers {repeats} more times to see who was right …")
    fresh = Digits(seed + 1)
    checks = [[fresh(p) for _ in range(repeats)] for p in (result.x, lucky.params)]
    console.print(answer(result, checks))
    console.print(verdict(result, belief, checks))
    draw(result, belief, PICTURE)
    console.print(f"Where the optimum is believed to be, and what it is worth: {PICTURE}")


def answer(result: Result, checks: Sequence[Sequence[float]]) -> Table:
    """Recommendation and luckiest trial side by side."""
    best = result.recommendation
    low, high = best.interval
    table = Table(title="The answer")
    table.add_column("")
    table.add_column("recommended", style="bold")
    table.add_column(f"luckiest trial (number {best.observed.id})")
    for name in SPACE:
        table.add_row(name, _show(best.params[name]), _show(best.observed.params[name]))
    table.add_section()
    table.add_row("what it promised", f"{best.mean:.3f}", f"{best.observed.value:.3f}")
    table.add_row("95 % interval", f"{low:.3f} to {high:.3f}", "one noisy value: none")
    table.add_row(f"trained {len(checks[0])} more times", *(_mean(check) for check in checks))
    return table


def verdict(result: Result, belief: Belief, checks: Sequence[Sequence[float]]) -> str:
    """What a newcomer should take from the table."""
    best = result.recommendation
    excess = _value(best.observed) - float(np.mean(checks[1]))
    off = abs(best.mean - float(np.mean(checks[0])))
    return (
        f"\nThe luckiest trial promised {excess:+.3f} more than it keeps: the best of "
        f"{result.nfev} noisy values is chosen for its noise.\nThe recommendation is a prediction "
        f"of the noiseless accuracy and is off by {off:.3f}.\n"
        f"Still to be won: about {belief.gap:.3f}, at most {belief.gap_interval[1]:.3f}; the next "
        f"trial would teach {belief.next_gain:.2f} nats about it.\n"
    )


def draw(result: Result, belief: Belief, path: Path) -> None:
    """The belief over (x*, f*): one panel per parameter, and f* on its own at the right."""
    told = [trial for trial in result.trials if trial.value is not None]
    ratios = [3.0] * len(SPACE) + [1.4]
    figure, axes = plt.subplots(
        1, len(SPACE) + 1, sharey=True, figsize=(15, 4.2), width_ratios=ratios, layout="constrained"
    )
    for axis, name in zip(axes, SPACE, strict=False):
        _panel(axis, name, result, belief, told)
    right = axes[-1]
    right.hist(belief.values, bins=20, orientation="horizontal", color=BLUE, alpha=0.6)
    right.set_xlabel("samples of f*")
    right.set_xticks([])
    values = [_value(trial) for trial in told]
    top = max(*values, float(np.quantile(belief.values, 0.98)))
    axes[0].set_ylim(np.quantile(values, 0.15), top + 0.02)
    axes[0].set_ylabel("accuracy")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _panel(axis: Axes, name: str, result: Result, belief: Belief, told: Sequence[Trial]) -> None:
    """One parameter: trials, samples of the optimal pair, recommendation, luckiest trial."""
    best, rng = result.recommendation, np.random.default_rng(0)
    parameter = SPACE[name]

    def place(all_params: Sequence[Mapping[str, Any]], spread: float) -> np.ndarray:
        values = [params[name] for params in all_params]
        if not isinstance(parameter, Categorical):
            return np.asarray(values, dtype=float)
        index = [parameter.choices.index(value) for value in values]
        return np.asarray(index) + spread * rng.uniform(-1, 1, len(index))

    values = [_value(trial) for trial in told]
    places = place([trial.params for trial in told], 0.25)
    axis.scatter(places, values, s=14, color=GREY, label="trials (noisy)")
    axis.scatter(
        place(belief.params, 0.25),
        belief.values,
        s=18,
        color=BLUE,
        alpha=0.45,
        linewidths=0,
        label="sampled optimal pairs (x*, f*)",
    )
    low, high = best.interval
    axis.errorbar(
        place([best.params], 0.0),
        [best.mean],
        yerr=[[best.mean - low], [high - best.mean]],
        fmt="o",
        color=RED,
        capsize=4,
        label="recommended, 95 % interval",
    )
    lucky = best.observed
    axis.scatter(
        place([lucky.params], 0.0),
        [_value(lucky)],
        marker="*",
        s=130,
        color=GOLD,
        edgecolor="black",
        linewidths=0.6,
        zorder=4,
        label="luckiest trial",
    )
    axis.set_xlabel(name.replace("_", " "))
    if isinstance(parameter, Categorical):
        axis.set_xticks(range(len(parameter.choices)), [str(c) for c in parameter.choices])
    elif isinstance(parameter, Float | Int) and parameter.log:
        axis.set_xscale("log")


def _value(trial: Trial) -> float:
    assert trial.value is not None, "only told trials are drawn"
    return trial.value


def _mean(values: Sequence[float]) -> str:
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return f"{np.mean(values):.3f} ± {error:.3f}"


def _show(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
