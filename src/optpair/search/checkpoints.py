"""Checkpoints: a new search, or the one that a file holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optpair.optimizer import Optimizer
from optpair.problem.outcomes import Direction
from optpair.problem.space import Space


def start(
    direction: Direction,
    space: Space,
    seed: int | None,
    checkpoint: str | Path | None,
    context: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Optimizer:
    """A new optimiser, or the one that the checkpoint holds."""
    if "direction" in options:
        raise TypeError(
            f"{direction} takes no direction, and {options['direction']!r:.80} was given: call "
            "minimize or maximize, or give each objective its own direction, "
            "outcomes={'error': 'minimize', 'speed': 'maximize'}"
        )
    single = options.get("outcomes") is None
    fresh = Optimizer(space, direction=direction if single else None, seed=seed, **options)
    fresh.space.check_context(context)
    if checkpoint is None:
        return fresh
    if not Path(checkpoint).exists():
        fresh.save(checkpoint)  # finds out now, not after an evaluation; and keeps the seed
        return fresh
    saved = Optimizer.load(checkpoint)
    if not single or saved.problem.names != fresh.problem.names:
        _same_outcomes(saved, fresh, checkpoint)
    elif fresh.noise is not None and saved.noise != fresh.noise:
        known = "inferred noise" if saved.noise is None else f"noise={saved.noise:g}"
        raise ValueError(
            f"{checkpoint} holds a search with {known}, not noise={fresh.noise:g}; give the same, "
            "leave it out, or choose another file"
        )
    compared = {name: options[name] for name in options if name not in ("noise", "outcomes")}
    options = {"seed": seed, **compared}
    given = [name for name in options if options[name] is not None]
    differ = [name for name in given if saved.configuration[name] != fresh.configuration[name]]
    if single and saved.direction != direction:
        differ.insert(0, "direction")
    if saved.space != fresh.space:  # as JSON, True and 1 would be equal
        differ.insert(0, "space")
    if differ:
        raise ValueError(
            f"{checkpoint} holds a search with another {differ[0]}; give the same one, leave it "
            "out where that is possible, or choose another file"
        )
    for trial in saved.trials:
        if trial.state == "pending":  # its evaluation was cut off
            saved.cancel(trial)
    return saved


def _same_outcomes(saved: Optimizer, fresh: Optimizer, checkpoint: str | Path) -> None:
    """Raise if a checkpoint is of other outcomes."""
    if list(saved.problem.outcomes.items()) != list(fresh.problem.outcomes.items()):
        known = ", ".join(f"{name!r}: {o!r}" for name, o in saved.problem.outcomes.items())
        raise ValueError(
            f"{checkpoint} holds a search with other outcomes, {{{known}}}; give the same, or "
            "choose another file"
        )
