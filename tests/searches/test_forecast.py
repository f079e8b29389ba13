"""What is left to be won after more trials: against slow searches, and against what came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from optpair import Constraint, Context, Fidelity, Float, Optimizer, Settings, Space, Stop, minimize
from optpair.engine.forecast import TRIALS, Believed, Forecast, searched
from optpair.engine.gaps import left_to_win, within
from optpair.runtime.streams import Stream
from shell_cases import TINY, filled, jes

LINE = Space({"x": Float(0, 1)})


def bowl(params: Mapping[str, Any]) -> float:
    return 4 * float(params["x"] - 0.3) ** 2


def told(count: int = 8, **options: Any) -> Optimizer:
    options = {"settings": Settings(**TINY), "seed": 0} | options
    optimizer = Optimizer(LINE, **options)
    for _ in range(count):
        trial = optimizer.ask()
        optimizer.tell(trial, bowl(trial.params))
    return optimizer


def believed(seed: int, points: int = 7) -> Believed:
    """Two sets, and three paths of each."""
    rng = np.random.default_rng(seed)
    roots = rng.standard_normal((2, points, points))
    means, K = rng.standard_normal((2, points)), roots @ roots.mT / points
    drawn = [rng.multivariate_normal(m, k, size=3) for m, k in zip(means, K, strict=True)]
    return Believed(means, K, np.stack(drawn), np.array([0.05, 0.3]))


class Slow:
    """One search, conditioned anew on all its values whenever something is asked."""

    def __init__(self, begin: Believed) -> None:
        self.begin = begin
        self.tried: list[int] = []
        self.y: list[float] = []
        self.eps: list[np.ndarray] = []

    def conditioned(self, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Mean, variance, paths and the logarithm of the evidence of a set."""
        means, K, paths, noise_var = (part[m] for part in self.begin)
        if not self.y:
            return means, np.diag(K), paths, 0.0
        k, y = K[:, self.tried], np.array(self.y)
        gram = k[self.tried] + noise_var * np.eye(len(y))
        weights = np.linalg.solve(gram, k.T).T
        variance = np.diag(K) - np.sum(weights * k, axis=1)
        noisy = paths[:, self.tried] + np.stack(self.eps, -1)[m]
        evidence = multivariate_normal(means[self.tried], gram).logpdf(y)
        at = means + weights @ (y - means[self.tried])
        return at, variance, paths + (y - noisy) @ weights.T, float(evidence)

    def look(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What to try by its gain, the averaged mean, the paths and the sets' weights."""
        each = [self.conditioned(m) for m in range(2)]
        evidence = np.array([e for *_, e in each])
        weights = np.exp(evidence - evidence.max()) / np.sum(np.exp(evidence - evidence.max()))
        gain = np.zeros(len(each[0][0]))
        for weight, (mean, variance, _, _) in zip(weights, each, strict=True):
            sd = np.sqrt(variance)
            u = (mean - mean.max()) / sd
            gain += weight * sd * (norm.pdf(u) + u * norm.cdf(u))
        averaged = sum(w * mean for w, (mean, *_) in zip(weights, each, strict=True))
        return gain, np.asarray(averaged), np.stack([paths for _, _, paths, _ in each]), weights


@pytest.mark.parametrize("once", [False, True])
def test_searches_go_on_as_if_they_were_conditioned_anew(once: bool) -> None:
    begin, rng = believed(1), Stream.of(3).draw()
    seen = searched(Stream.of(3), begin, np.full(7, True), once=once, truths=6, trials=5)
    slow = [Slow(begin) for _ in range(6)]
    truths = begin.paths.reshape(6, 7)
    for t in range(6):
        for s, search in enumerate(slow):
            _, averaged, paths, weights = search.look()
            here = 0 if t == 0 else int(np.argmax(averaged))
            np.testing.assert_allclose(seen.weights[t, s], weights, rtol=1e-8)
            np.testing.assert_allclose(seen.best[t, s], paths.max(-1), rtol=1e-8)
            np.testing.assert_allclose(seen.here[t, s], paths[..., here], rtol=1e-8, atol=1e-10)
        noise, white = rng.standard_normal(6), rng.standard_normal((6, 2, 3))
        for s, search in enumerate(slow):
            gain = search.look()[0]
            gain[search.tried if once else []] = 0.0
            search.tried.append(int(np.argmax(gain)))
            sd = np.sqrt(begin.noise_var)
            search.y.append(truths[s, search.tried[-1]] + sd[s // 3] * noise[s])
            search.eps.append(sd[:, None] * white[s])


def test_rows_that_are_tried_once_are_used_up() -> None:
    begin = believed(4)._replace(noise_var=np.full(2, 1e-10))
    free = np.array([True, True, True, True, True, True, False])
    seen = searched(Stream.of(0), begin, free, once=True, truths=6)
    assert len(seen.best) == 7
    truths = begin.paths.reshape(6, 7)[:, :6].max(1)
    assert np.all(seen.best[-1] >= truths[:, None, None] - 1e-3)
    assert np.all(seen.here[-1] >= np.minimum(seen.here[-1], truths[:, None, None]) - 1e-3)
    every = searched(Stream.of(0), begin, np.full(7, True), once=True, truths=6)
    np.testing.assert_allclose(every.here[-1], every.best[-1], atol=1e-3)  # nothing is left


def test_the_middle_one_of_the_first_numbers_of_trials() -> None:
    """Three searches with one set of two paths, whose gaps fall at different times."""
    falls = np.array([[1, 2], [2, 2], [4, 9]])
    gaps = np.where(np.arange(6)[:, None, None] < falls, 4.0, 1.0)[:, :, None]
    ahead = Forecast(gaps, np.ones((6, 3, 1)))
    cases = {(5.0, 1.0): 0, (1.0, 0.5): 2, (1.0, 1.0): 2, (0.5, 0.5): None}
    for (gap, chance), expected in cases.items():
        assert ahead.until(Stop(gap, chance)) == expected
    assert ahead.halved() == 2
    assert Forecast(gaps / 4 * 1.7e308, ahead.weights).halved() == 2
    assert Forecast(0 * gaps, ahead.weights).halved() is None
    late = Forecast(gaps[:2], ahead.weights[:2])
    assert late.until(Stop(1.0)) is None
    assert late.halved() is None
    two = Forecast(np.repeat(gaps, 2, axis=2), np.broadcast_to([0.0, 1.0], (6, 3, 2)).copy())
    two.gaps[:, :, 0] = 4.0  # a set that has foretold nothing
    assert two.until(Stop(1.0, 0.5)) == 2


def test_a_forecast_begins_with_what_is_believed_now() -> None:
    optimizer = told(4, noise=0.05)
    answers = optimizer._session.answers(optimizer._history.data())
    ahead = answers.forecast()
    assert ahead is not None
    M, P = TINY["sets"], TINY["pairs"]
    assert ahead.gaps.shape == (TRIALS + 1, M * P, M, P)
    now = answers.belief().gaps.reshape(M, P)
    np.testing.assert_allclose(ahead.gaps[0], np.tile(now, (M * P, 1, 1)), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ahead.weights[0], 1 / M)
    assert ahead.gaps[-1].mean() < 0.5 * ahead.gaps[0].mean()
    again = answers.forecast()
    assert again is not None
    np.testing.assert_array_equal(ahead.gaps, again.gaps)


def test_nothing_is_left_to_do_once_a_search_is_over() -> None:
    optimizer = told(10)
    belief = optimizer.belief()
    for gap in np.quantile(belief.gaps, [0.1, 0.5, 0.99]):
        for chance in (0.2, 0.9):
            stop = Stop(float(gap), chance)
            assert (optimizer.until(stop) == 0) == (belief.chance(stop.gap) >= chance)
    before = optimizer._to_json()
    assert optimizer.until(Stop(0.0, 1.0)) is None  # nor ever, as far as anybody can say
    assert optimizer._to_json() == before


def branin(params: Mapping[str, Any]) -> float:
    a, b = 15 * params["a"] - 5, 15 * params["b"]
    bent = b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6
    return float(bent**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10)


def waves(params: Mapping[str, Any]) -> float:
    x = params["a"]
    return float(np.sin(13 * x) * np.sin(27 * x) / 2 - x / 10)


def valley(params: Mapping[str, Any]) -> float:
    return float(sum((i + 1) * (v - 0.2 - 0.15 * i) ** 2 for i, v in enumerate(params.values())))


def foretold_and_came(
    function: Callable[[Mapping[str, Any]], float], names: str, noise: float, seed: int
) -> list[tuple[int, int | None, int]]:
    """How many trials it was to take until little enough was left, how many it took, and had."""
    rng, last, space = np.random.default_rng(seed), 28, Space({n: Float(0, 1) for n in names})
    optimizer = Optimizer(space, seed=seed, noise=None if noise else 0.0)
    gaps: dict[int, np.ndarray] = {}
    stops: dict[int, list[tuple[Stop, int | None]]] = {}
    for count in range(1, last + 1):
        trial = optimizer.ask()
        optimizer.tell(trial, function(trial.params) + noise * rng.standard_normal())
        if count < 8:
            continue
        answers = optimizer._session.answers(optimizer._history.data())
        gaps[count] = left_to_win(*answers._ends(answers._sampled()))
        if count in (8, 14):
            wanted = [Stop(s * gaps[count].mean(), c) for s in (0.5, 0.2) for c in (0.5, 0.9)]
            ahead = answers.forecast()
            assert ahead is not None
            stops[count] = [(stop, ahead.until(stop)) for stop in wanted]
    found = []
    for begin, listed in stops.items():
        for stop, said in listed:
            later = range(begin + 1, last + 1)
            came = (t - begin for t in later if within(gaps[t], stop.gap) >= stop.chance)
            if said:
                found.append((said, next(came, None), last - begin))
    return found


def test_what_is_foretold_is_right_within_a_factor_of_three_in_four_of_five_cases() -> None:
    """As `Optimizer.until` says, less two standard errors of a share in so many cases."""
    cases = [
        case
        for function, names, noise in (
            *((branin, "ab", 0.0), (branin, "ab", 5.0), (waves, "a", 0.03), (valley, "abc", 0.0)),
        )
        for case in foretold_and_came(function, names, noise, seed=1000)
    ]
    judged = [(said, came) for said, came, had in cases if came is not None or had >= 3 * said]
    ratios = np.array([np.inf if came is None else came / said for said, came in judged])
    assert len(ratios) >= 20
    right = np.mean((ratios >= 1 / 3) & (ratios <= 3))
    assert right >= 0.8 - 2 * np.sqrt(0.8 * 0.2 / len(ratios))
    assert np.mean(ratios > 3) <= 0.15  # promises too much


@pytest.mark.parametrize(
    "optimizer",
    [
        pytest.param(lambda: jes(), id="nothing is told"),
        pytest.param(lambda: told(2), id="the design is not over"),
        pytest.param(lambda: told(8, acquisition="random"), id="no model chooses"),
    ],
)
def test_nobody_can_say(optimizer: Callable[[], Optimizer]) -> None:
    assert optimizer().until(Stop(0.01)) is None


def test_nobody_can_say_under_constraints_with_fidelities_or_in_doubt() -> None:
    options: dict[str, Any] = {"settings": Settings(**TINY), "seed": 0}
    limited = Optimizer(LINE, outcomes={"a": "minimize", "b": Constraint(high=0.2)}, **options)
    looks = Optimizer(Space({"x": Float(0, 1), "n": Fidelity(1, 9)}), **options)
    doubtful = Optimizer(LINE, seed=0)
    for i in range(20):
        x = i / 19
        limited.tell({"x": x}, {"a": x, "b": 1 - x})
        looks.tell({"x": x, "n": 9}, bowl({"x": x}))
        doubtful.tell({"x": x}, -80.0 if i == 14 else (x - 0.3) ** 2 + 0.01 * np.sin(37.0 * i))
    assert limited.until(Stop(1e-9)) is None
    assert looks.until(Stop(0.0, 1.0)) is None
    assert doubtful.recommend().doubted
    assert doubtful.until(Stop(1e-9)) is None
    several = Optimizer(LINE, outcomes={"a": "minimize", "b": "maximize"}, **options)
    with pytest.raises(ValueError, match="stop needs one objective"):
        several.until(Stop(0.1))
    with pytest.raises(TypeError, match="stop must be a Stop"):
        limited.until(0.1)  # type: ignore[arg-type]


def test_a_context_is_asked_about() -> None:
    space = Space({"x": Float(0, 1), "site": Context(["A", "B"])})
    optimizer = Optimizer(space, seed=0, settings=Settings(**TINY))
    for i in range(8):
        trial = optimizer.ask(context={"site": "AB"[i % 2]})
        optimizer.tell(trial, bowl(trial.params))
    with pytest.raises(ValueError, match="context is missing"):
        optimizer.until(Stop(0.1))
    assert optimizer.until(Stop(1e300), context={"site": "B"}) == 0


def test_a_search_that_ends_before_says_how_far_off_the_end_is() -> None:
    options: dict[str, Any] = {"settings": Settings(**TINY), "progress": False, "seed": 0}
    stop = Stop(gap=0.02)
    result = minimize(bowl, LINE, 4, stop=stop, **options)
    more = result.optimizer.until(stop)
    assert more
    assert result.message == f"4 evaluations were made; it takes about {more} more until {stop}"
    assert "until" not in minimize(bowl, LINE, 4, **options).message
    assert "until" not in minimize(bowl, LINE, 30, stop=Stop(1.0, 0.5), **options).message


def test_the_page_says_when_half_is_left(tmp_path: Path) -> None:
    optimizer = filled(jes(), [1.0, 0.5, 2.0, 0.7, 1.1, 0.2])
    answers = optimizer._session.answers(optimizer._history.data())
    halved = answers.halved()
    assert halved
    optimizer.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"About {halved} more trial" in page
