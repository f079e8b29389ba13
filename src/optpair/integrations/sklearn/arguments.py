"""Arguments of a search: what they may be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from optpair.problem.outcomes import check_noise


def seed_of(random_state: Any) -> int:
    """scikit-learn's `random_state` as a seed: an int is one, a generator draws one."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def known_noise(given: object) -> float | None:
    """The standard deviation of a mean score's noise; None where folds or model are to say it."""
    if isinstance(given, str) and given != "folds":
        raise ValueError(
            "noise must be 'folds', None, where the model is to infer it, or a standard deviation, "
            f"not {given!r}"
        )
    return None if given is None or isinstance(given, str) else check_noise(given)


def check_count(name: str, value: object) -> None:
    """Refuse what is not an int of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an int of at least 1, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be an int of at least 1, not {value!r}")


def check_names(given: Iterable[str]) -> None:
    """Refuse what other searches call the space."""
    for name in ("param_distributions", "param_grid", "search_spaces"):
        if name in given:
            raise TypeError(
                f"JESSearchCV has no {name!r}: what is in it may be given as it is, as space=…: "
                "lists, and uniform, loguniform and randint of scipy.stats"
            )
