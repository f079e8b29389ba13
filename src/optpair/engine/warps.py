"""Warps that the data choose: of constraints, and of values at several fidelities.

Near a limit every digit counts, far from it hardly any digit does. A constraint may be met by a
hair or by a factor of a million, and a scaling that shows the second hides the first. Values are
therefore compressed on both sides of the limit, or of the middle between two, by (Y1) in
`trials.transform`, if that helps. The unit is the one under which a GP explains the values best:
with K its correlations at the data under a few length scales and shares of noise,

    (Y2)  log evidence = −n/2 log(rᵀK⁻¹r) − ½ log|K| + Σ_i log w′(y_i),    r = w(y) − μ

where μ is the mean that suits K. Without a warp the last term is zero, and `SIMPLER` is added.

Bad values of an objective are compressed as always, unless there are fidelities: there most values
may be of cheap looks, and what is bad for a whole look may be good for a cheap one. Then (Y2)
decides as well, with `CLEARLY` in place of `SIMPLER`. Where trials have several looks, many of them
come to their ends; values are then compressed unless that explains them clearly worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.linalg import solve_triangular

from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.kernels import Columns, Matern52
from optpair.runtime.shapes import Float
from optpair.trials.data import Measured, thinned
from optpair.trials.transform import ROUND_OFF, SMALLEST, Scaling

JUDGED = 64  # values at most: of more, some are used for the evidence
FEWEST = 4  # values: with fewer, their scale is unknown
STEP, STEPS = 4.0, 8  # the ratio of neighbouring units, and their number
LENGTHS = (0.25, 1.0, 4.0)  # length scales, times √d
NOISES = (1e-4, 1e-2)  # of the variance
LOUDER = (1e-4, 1e-2, 1e-1)  # the same, of objectives,
LOUDEST = (*LOUDER, 0.3)  # and of several looks at trials
SIMPLER = 2.0  # nats
CLEARLY = 6.0  # the same, of objectives: a cliff has hundreds
WORSE = 3.0  # nats by which a warp may be less likely, if trials have several looks
FURTHEST = 1e305  # units from the centre, at most
LARGEST = 1e305  # distance from which units can be derived, at most


def around(measured: Measured, limits: tuple[float, float], columns: Columns) -> Scaling:
    """The likeliest scaling of a constraint's values, among those with and without a warp."""
    y = measured.y
    ends = [end for end in limits if np.isfinite(end)]
    centre = sum(end / len(ends) for end in ends)
    halves = np.abs(y / 2 - centre / 2)
    furthest = 2 * float(np.max(halves, initial=0.0))
    plain = Scaling.of(y, warp=False)
    if len(y) < FEWEST or not ROUND_OFF * abs(centre) < furthest < LARGEST:
        return plain
    middle = 2 * float(np.median(halves[halves > 0]))
    within = ends[-1] / 2 - ends[0] / 2
    units = STEP * middle * STEP ** -np.arange(float(STEPS))
    units = np.unique(np.maximum(units, max(within, furthest / FURTHEST)))
    found = [plain, *(Scaling.around(y, centre, float(unit)) for unit in units)]
    judged = thinned(measured, JUDGED)
    values = evidence(judged.X, judged.y, found, columns)
    values[0] += SIMPLER
    return found[int(np.argmax(values))]


def of_looks(measured: Measured, columns: Columns, targets: Mapping[int, float]) -> Scaling:
    """The likeliest scaling of an objective's values at several fidelities.

    It compresses none, or those that are bad among all values, or those that are bad among the half
    of the looks that is nearest to the target.
    """
    counted = ~measured.doubted
    X, y = measured.X[counted], measured.y[counted]
    plain = Scaling.of(y, warp=False)
    if len(y) < FEWEST:
        return plain
    away = np.abs(X[:, list(targets)] - list(targets.values())).max(1)
    near = y[away <= np.median(away)]
    found = [plain, Scaling.of(y), Scaling.of(y, usual=near)]
    judged = thinned(measured._replace(X=X, y=y), JUDGED)
    noises = LOUDEST if measured.several else LOUDER
    values = evidence(judged.X, judged.y, found, columns, noises)
    values[0] += -WORSE if measured.several else CLEARLY
    return found[int(np.argmax(values))]


def evidence(
    X: Float[np.ndarray, "n D"],
    y: Float[np.ndarray, " n"],
    scalings: list[Scaling],
    columns: Columns,
    noises: Sequence[float] = NOISES,
) -> Float[np.ndarray, " S"]:
    """(Y2) of each scaling, with the correlations that suit it best."""
    n, d = len(y), max(columns) + 1
    lengths = np.repeat(LENGTHS, len(noises))[:, None] * np.full(d, np.sqrt(d))
    one = np.ones(len(lengths))
    covariance = Matern52().bind(Hyperparameters(lengths, one, one, 0 * one), columns)
    noise = np.tile(noises, len(LENGTHS))[:, None, None] * np.eye(n)
    C = np.linalg.cholesky(covariance.between(X, X).K + noise)
    W = np.stack([scaling.standardise(y) for scaling in scalings], 1)
    whole = np.column_stack([W, np.ones(n)])
    both = np.stack([solve_triangular(c, whole, lower=True, check_finite=False) for c in C])
    white, ones = both[..., :-1], both[..., -1:]
    mean = np.sum(white * ones, 1, keepdims=True) / np.sum(ones**2, 1, keepdims=True)
    square = np.sum((white - mean * ones) ** 2, 1)  # rᵀK⁻¹r
    half_log_det = np.sum(np.log(np.diagonal(C, axis1=1, axis2=2)), 1)
    slopes = [np.sum(np.log(s.slope(y)) - np.log(s.scale)) for s in scalings]
    value = -0.5 * n * np.log(np.maximum(square, SMALLEST)) - half_log_det[:, None]
    return np.asarray(value.max(0) + np.array(slopes))  # (Y2)
