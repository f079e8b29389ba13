"""Resources of a search: rows to train on, or a parameter like `n_estimators`, as a fidelity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from optpair.problem.outcomes import meant
from optpair.problem.parameters import Fidelity
from optpair.problem.space import Parameter

SAMPLES = "n_samples"
"""The resource that is not a parameter of the estimator: rows of the data."""

SHARE = 27  # the least resources are one part in this many, unless given

ALMOST = 0.9
"""From this share on a look costs about as much as a whole one, and is made whole."""


@dataclass(frozen=True)
class Resource:
    """What a cross-validation is given more or less of: from `least` to `most`, whole numbers."""

    name: str
    least: int
    most: int

    @property
    def fidelity(self) -> Parameter:
        """As a parameter of the space, whose answers are for all of it."""
        return Fidelity(self.least, self.most, log=True)

    def is_almost_all(self, amount: int) -> bool:
        """Whether so little is left out that all of it costs hardly more, and can be the answer."""
        return amount >= ALMOST * self.most

    @property
    def is_samples(self) -> bool:
        """Whether it is rows of the data, which the estimator is not told."""
        return self.name == SAMPLES


def resource_of(search: Any, X: Any, y: Any, splits: int) -> Resource | None:
    """The resource that a search is told to use, with its ends; None where there is none.

    Args:
        search: the search, with `resource`, `min_resources`, `max_resources` and `estimator`.
        X: the data.
        y: the labels.
        splits: the number of folds.

    Raises:
        TypeError: if one of them is of a wrong kind.
        ValueError: if it has a value that is not accepted; the error says what is.
    """
    name = search.resource
    if name is None:
        for option in ("min_resources", "max_resources"):
            if getattr(search, option) != "auto":
                raise ValueError(
                    f"{option}={getattr(search, option)!r:.80} needs a resource, like "
                    "resource='n_samples'"
                )
        return None
    known = search.estimator.get_params()
    if not isinstance(name, str) or (name != SAMPLES and name not in known):
        raise ValueError(
            f"resource must be 'n_samples' or a parameter of the estimator, not {name!r:.80}"
            f"{meant(name, [SAMPLES, *known])}"
        )
    samples = _num_samples(X)
    most = _most(search.max_resources, name, samples, known)
    least = _least(search.min_resources, name, most, _fewest(search.estimator, name, y, splits))
    return Resource(name, least, most)


def _most(given: Any, name: str, samples: int, known: Mapping[str, Any]) -> int:
    if isinstance(given, str) and given == "auto":
        most = samples if name == SAMPLES else known[name]
        if not _is_whole(most) or most < 2:
            raise ValueError(
                f"max_resources must be given where the estimator's own {name} is {most!r:.80}: an "
                "int of at least 2, for which the answer is wanted"
            )
        return int(most)
    if not _is_whole(given):
        raise TypeError(f"max_resources must be 'auto' or an int, not {given!r:.80}")
    highest = samples if name == SAMPLES else given
    if not 2 <= given <= highest:
        end = f"from 2 to {samples}, the rows there are" if name == SAMPLES else "of at least 2"
        raise ValueError(f"max_resources must be 'auto' or an int {end}, not {given!r}")
    return int(given)


def _least(given: Any, name: str, most: int, fewest: int) -> int:
    """By default a twenty-seventh of all, but enough for every fold."""
    if isinstance(given, str) and given == "auto":
        return min(max(-(-most // SHARE), fewest), most - 1)
    share = isinstance(given, float | np.floating)
    if not (_is_whole(given) or share):
        raise TypeError(
            f"min_resources must be 'auto', an int, or a share between 0 and 1, not {given!r:.80}"
        )
    least = round(given * most) if share and 0 < given < 1 else given
    if not 1 <= least < most or (share and least == given):
        raise ValueError(
            f"min_resources must be 'auto', an int from 1 to {most - 1}, below max_resources, or a "
            f"share of that between 0 and 1, not {given!r}"
        )
    return int(least)


def _fewest(estimator: Any, name: str, y: Any, splits: int) -> int:
    """Rows below which a fold has hardly anything to learn from, as scikit-learn's halving has."""
    if name != SAMPLES:
        return 1
    classes = len(np.unique(np.asarray(y))) if is_classifier(estimator) and has_classes(y) else 1
    return 2 * splits * classes


def has_classes(y: Any) -> bool:
    """Whether labels are classes, one for each row."""
    return y is not None and type_of_target(y) in ("binary", "multiclass")


def _is_whole(given: Any) -> bool:
    return isinstance(given, int | np.integer) and not isinstance(given, bool)
