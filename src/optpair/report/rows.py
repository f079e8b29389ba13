"""Rows of a page, from the trials of a history."""

from __future__ import annotations

from optpair.problem.space import Space
from optpair.report.subject import Row
from optpair.trials.history import History
from optpair.trials.trial import Trial


def rows_of(history: History) -> tuple[Row, ...]:
    """Trials with one outcome, in order."""
    points = history.points
    return tuple(
        Row(
            *(t.id, t.state, t.actual, t.value, t.noise_var, t.reason or ""),
            x=points[t.id],
            notes=t.notes,
            steps=on_the_way(history.space, t),
            cost=t.spent,
        )
        for t in history
    )


def joint_rows_of(history: History) -> tuple[Row, ...]:
    """Trials with several outcomes, in order."""
    points = history.points
    return tuple(
        Row(
            *(t.id, t.state, t.actual),
            message=t.reason or "",
            x=points[t.id],
            notes=t.notes,
            outcomes={name: found.value for name, found in t.outcomes.items()},
        )
        for t in history
    )


def on_the_way(space: Space, trial: Trial) -> dict[float, float]:
    """The values of a trial's looks by their fidelity, where there is one fidelity."""
    if len(space.targets) != 1 or not trial.looks:
        return {}
    (name,) = space.targets
    places = [look.at[name] for look in trial.looks] + [trial.actual[name]]
    values = [next(iter(look.outcomes.values())).value for look in trial.seen]
    return dict(zip(map(float, places), values, strict=True))
