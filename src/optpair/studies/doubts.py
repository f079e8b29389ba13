"""Values of a study that look like mistakes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial

from optpair.studies.config import StudyFile
from optpair.studies.results import values_of
from optpair.trials.usual import far_above

WHY = (
    "far better than the others predict; it does not count until a repeat agrees, or optpair "
    "revise corrects it"
)


def doubted(file: StudyFile, study: Study, trials: Sequence[FrozenTrial]) -> list[int]:
    """The numbers of told trials that are in doubt. Without a value far above, no model is read."""
    told = [values_of(trial, file) for trial in trials]
    for name, objective in file.objectives.items():
        y = np.array([objective.sign * values[name] for values in told if name in values])
        if far_above(y, np.zeros(len(y), dtype=bool)):
            break
    else:
        return []
    if not all(any(name in values for values in told) for name in file.objectives):
        return []
    from optpair.studies.samplers import make_sampler  # late: values are seldom far from all others

    return make_sampler(file).doubted(study)
