"""Orders to a study's workers: pause, resume and stop, kept with the study where all of them look.

A stop is a number that grows: workers compare it with what it was when they started, so that an
old order does not end a new run, and no clock is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from optuna import Study

from optpair.studies.storage import retry

CONTROL = "optpair:control"
"""The study's attribute that holds its orders."""

Order = Literal["pause", "resume", "stop"]
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True)
class Control:
    """What workers are to do: wait while `paused`, end when `stops` has grown."""

    paused: bool = False
    stops: int = 0


def read(study: Study) -> Control:
    """The orders as they are now."""
    return of(retry(lambda: study.user_attrs))


def of(attributes: Mapping[str, Any]) -> Control:
    """The orders among a study's attributes; whatever is not one counts as none."""
    found = attributes.get(CONTROL)
    if not isinstance(found, Mapping):
        return Control()
    stops = found.get("stops")
    return Control(found.get("paused") is True, stops if isinstance(stops, int) else 0)


def give(study: Study, order: Order) -> Control:
    """Give an order to the workers of a study, on all machines; they take it between trials.

    A stop ends a pause too, so that the next run does not wait.

    Args:
        study: the study, as it is stored.
        order: "pause", "resume" or "stop".

    Returns:
        The orders that hold now.
    """
    now = read(study)
    after = {
        "pause": replace(now, paused=True),
        "resume": replace(now, paused=False),
        "stop": Control(False, now.stops + 1),
    }[order]
    retry(lambda: study.set_user_attr(CONTROL, asdict(after)))
    return after
