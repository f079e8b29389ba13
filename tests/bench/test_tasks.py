"""Every task's optimum is where it says, and nothing beats it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import qmc

from optpair.bench import tasks


def small_gp(dimensions: int, seed: int) -> tasks.Task:
    """As rough a landscape as the real one, at a tenth of the time."""
    function = tasks.GPSample.draw(np.random.default_rng(seed), dimensions, features=1000)
    return tasks.Task(f"gp{dimensions}", seed, function, 0.01)


def _climb(task: tasks.Task, x: np.ndarray) -> float:
    """An ascent that knows nothing of gradients or features."""
    end = minimize(
        lambda x: -task.value(x[None])[0],
        x,
        method="Powell",
        bounds=[(0, 1)] * len(x),
        options={"maxfev": 300},
    )
    return float(-end.fun)


@pytest.mark.parametrize(
    "task",
    [tasks.make(name) for name in ("gp2", *tasks.SYNTHETIC)]
    + [small_gp(d, seed) for d in (4, 6, 12) for seed in (0, 1)],
    ids=lambda task: f"{task.name}-{task.seed}",
)
def test_nothing_beats_the_optimum(task: tasks.Task) -> None:
    best = task.optimum
    assert best.x.shape == (task.dimensions,)
    assert best.x.min() >= 0
    assert best.x.max() <= 1
    assert task.value(best.x[None])[0] == pytest.approx(best.f, rel=1e-12)

    rng = np.random.default_rng(1)
    spread = rng.random((4096 if task.lengthscale else 2**16, task.dimensions))
    spread[::2] = np.clip(2 * spread[::2] - 0.5, 0, 1)  # half of them on faces
    near = np.clip(best.x + 0.01 * rng.standard_normal((256, task.dimensions)), 0, 1)
    values = task.value(spread)
    assert max(values.max(), task.value(near).max()) <= best.f + 1e-9
    for start in spread[np.argsort(-values)[:3]]:
        assert _climb(task, start) <= best.f + 1e-9


@pytest.mark.parametrize("dimensions", [2, 12])
def test_another_larger_search_finds_the_same_optimum(dimensions: int) -> None:
    function = small_gp(dimensions, 5).function
    assert isinstance(function, tasks.GPSample)
    other = function.optimum(points=2**14, starts=200, seed=1)
    assert function.optimum().f == pytest.approx(other.f, abs=1e-9)


def test_published_optima() -> None:
    values = {name: tasks.make(name).optimum.f for name in tasks.SYNTHETIC}
    assert values["branin"] == pytest.approx(-10 / (8 * np.pi), rel=1e-12)
    assert values["hartmann3"] == pytest.approx(3.86278, abs=1e-5)
    assert values["hartmann6"] == pytest.approx(3.32237, abs=1e-5)


def test_branin_at_a_known_point() -> None:
    # At x = (0, 0): (0 − 0 + 0 − 6)² + 10(1 − 1/8π) + 10.
    assert tasks.branin(np.array([[1 / 3, 0.0]]))[0] == pytest.approx(-56 + 10 / (8 * np.pi))


def test_gp_sample_has_the_stated_moments() -> None:
    """Var f(x) = a = 10, and Cov(f(x), f(x′)) = a exp(−r²/2ℓ²), over many draws."""
    draws, X = 3000, np.array([[0.3, 0.4], [0.4, 0.4]])  # one length scale apart
    rng = np.random.default_rng(0)
    values = np.array([tasks.GPSample.draw(rng, 2, features=100)(X) for _ in range(draws)])
    error = 10 * np.sqrt(2 / draws)
    assert abs(np.mean(values[:, 0] ** 2) - 10) < 4 * error
    assert abs(np.mean(values[:, 0] * values[:, 1]) - 10 * np.exp(-0.5)) < 4 * error


def test_gradient() -> None:
    function = tasks.gp_sample(4, 0).function
    assert isinstance(function, tasks.GPSample)
    x = np.array([0.2, 0.9, 0.5, 0.1])
    numeric = approx_fprime(x, lambda x: function(x[None])[0], 1e-6)
    value, gradient = function.gradient(x)
    assert value == pytest.approx(function(x[None])[0])
    np.testing.assert_allclose(gradient, numeric, atol=1e-3)


def test_single_precision_screening_is_close() -> None:
    function = tasks.gp_sample(2, 0).function
    X = np.random.default_rng(0).random((100, 2))
    np.testing.assert_allclose(function(X.astype(np.float32)), function(X), atol=1e-2)


def test_a_seed_is_a_new_gp_task_and_the_same_one_again() -> None:
    X = np.random.default_rng(0).random((5, 2))
    one, again, other = (tasks.make("gp2", seed).value(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.1


def test_noise_belongs_to_task_seed_and_index() -> None:
    task, x, z = tasks.make("branin", 3), np.array([0.1, 0.2]), np.array([0.8, 0.9])
    noise = task.observe(x, 7) - task.value(x[None])[0]
    assert noise == pytest.approx(task.observe(z, 7) - task.value(z[None])[0])
    assert noise != pytest.approx(task.observe(x, 8) - task.value(x[None])[0])
    other = tasks.make("branin", 4)
    assert noise != pytest.approx(other.observe(x, 7) - other.value(x[None])[0])


def test_noise_has_the_stated_size() -> None:
    task, x = tasks.make("hartmann3"), np.full(3, 0.5)
    draws = np.array([task.observe(x, i) for i in range(2000)])
    assert np.std(draws) == pytest.approx(np.sqrt(task.noise_var), rel=0.08)
    points = qmc.Sobol(3, rng=1).random(2**12)
    assert np.sqrt(task.noise_var) == pytest.approx(0.1 * np.std(task.value(points)), rel=0.05)


def test_noise_can_be_given() -> None:
    assert tasks.make("branin", noise_var=0.01).noise_var == 0.01
    x = np.array([0.5, 0.5])
    silent = tasks.make("branin", noise_var=0.0)
    assert silent.observe(x, 0) == silent.value(x[None])[0]


@pytest.mark.parametrize("noise_var", [-1.0, float("nan"), float("inf")])
def test_bad_noise_is_refused(noise_var: float) -> None:
    with pytest.raises(ValueError, match="finite variance"):
        tasks.make("branin", noise_var=noise_var)


def test_unknown_task_is_refused() -> None:
    with pytest.raises(ValueError, match="gp2, gp4, gp6, gp12, branin"):
        tasks.make("brannin")


def test_initial_points_are_shared_and_uniform() -> None:
    first, again = tasks.make("gp4", 2).initial(5), tasks.make("gp4", 2, 1.0).initial(5)
    np.testing.assert_array_equal(first, again)
    assert first.shape == (5, 4)
