"""Hyperparameters: what sets accept, and the table between them and θ."""

from __future__ import annotations

import numpy as np
import pytest

from gp_cases import HYPERS, STEP
from optpair.gp import PAPER, Hyperparameters, Matern52, Mixed, Prior
from optpair.gp.hyperparameters import Exp, Logit, Times
from optpair.gp.process import Process

RNG = np.random.default_rng(0)
PROCESSES = {
    "plain": Process((0, 1), Matern52(), Prior(noise_floor=1e-3)),
    "mixed": Process((0, 1, 1), Mixed(), Prior(noise_floor=1e-3)),
    "paper": Process((0,), Matern52(), PAPER),
}


def thetas(process: Process) -> np.ndarray:
    return np.asarray(0.7 * RNG.normal(size=(4, process.table.size)))


def test_parts_are_views_by_name() -> None:
    table = PROCESSES["mixed"].table
    theta = np.arange(12.0).reshape(2, 6)
    parts = table.parts(theta)
    assert table.size == 6
    assert list(parts) == ["lengthscale", "outputscale", "noise", "mean", "rough"]
    np.testing.assert_array_equal(parts["lengthscale"], [[0, 1], [6, 7]])
    np.testing.assert_array_equal(parts["rough"], [[5], [11]])
    parts["noise"][:] = -1.0
    np.testing.assert_array_equal(theta[:, 3], -1.0)
    assert {name: part.shape for name, part in table.parts(theta[:, None]).items()} == {
        "lengthscale": (2, 1, 2), "outputscale": (2, 1, 1), "noise": (2, 1, 1),
        "mean": (2, 1, 1), "rough": (2, 1, 1),
    }  # fmt: skip


def test_the_sets_that_theta_stands_for() -> None:
    process = PROCESSES["mixed"]
    theta = thetas(process)
    hypers = process.table.hyperparameters(theta)
    np.testing.assert_allclose(hypers.lengthscale, np.exp(theta[:, :2]))
    np.testing.assert_allclose(hypers.outputscale, np.exp(theta[:, 2]))
    np.testing.assert_allclose(hypers.noise, 1e-3 + np.exp(theta[:, 3]))
    np.testing.assert_allclose(hypers.mean, 0.5 * theta[:, 4])
    np.testing.assert_allclose(hypers.own["rough"], 1 / (1 + np.exp(-4 * theta[:, 5])))
    values = process.table.values(theta)
    np.testing.assert_array_equal(values["noise"][:, 0], hypers.noise)
    paper = PROCESSES["paper"]
    assert np.all(paper.table.hyperparameters(thetas(paper)).mean == 0)


@pytest.mark.parametrize("name", PROCESSES)
def test_chain_and_prior_against_central_differences(name: str) -> None:
    # Differences err by step²/6·f‴ + eps·f/step, some 1e-9 for values of order 10.
    table = PROCESSES[name].table
    theta = thetas(PROCESSES[name])
    weights = {b.name: RNG.normal(size=(4, b.size)) for b in table.blocks}

    def total(theta: np.ndarray) -> np.ndarray:
        values = table.values(theta)
        return np.sum([np.sum(weights[n] * v, 1) for n, v in values.items()], axis=0)

    chained, (density, slope) = table.chain(theta, weights), table.log_prior(theta)
    assert density.shape == (4,)
    for i, e in enumerate(STEP * np.eye(table.size)):
        for got, function in (
            (chained, total),
            (slope, lambda theta: table.log_prior(theta)[0]),
        ):
            difference = (function(theta + e) - function(theta - e)) / (2 * STEP)
            np.testing.assert_allclose(got[:, i], difference, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("name", PROCESSES)
def test_the_prior_is_the_sum_of_its_blocks(name: str) -> None:
    """Normal priors are one product of matrices: to round-off what the blocks say one by one."""
    table, theta = PROCESSES[name].table, thetas(PROCESSES[name])
    parts = table.parts(theta)
    values = [b.prior.log_density(parts[b.name], table.d).sum(axis=1) for b in table.blocks]
    slopes = [b.prior.slope(parts[b.name], table.d) for b in table.blocks]
    density, slope = table.log_prior(theta)
    np.testing.assert_allclose(density, np.sum(values, axis=0), rtol=1e-12)
    np.testing.assert_allclose(slope, np.concatenate(slopes, axis=1), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", PROCESSES)
def test_rescaling_keeps_the_hyperparameters_in_raw_units(name: str) -> None:
    """y = loc + scale·standardised, before and after; the floor stays on standardised values."""
    (loc, scale), (new_loc, new_scale) = (3.0, 2.0), (3.8, 1.5)
    process = PROCESSES[name]
    table, theta = process.table, thetas(process)
    moved = table.rescaled(theta, scale / new_scale, (loc - new_loc) / new_scale)
    before, after = table.hyperparameters(theta), table.hyperparameters(moved)
    np.testing.assert_array_equal(after.lengthscale, before.lengthscale)
    for own in before.own:
        np.testing.assert_array_equal(after.own[own], before.own[own])
    np.testing.assert_allclose(after.outputscale * new_scale**2, before.outputscale * scale**2)
    floor = process.prior.noise_floor
    np.testing.assert_allclose(
        (after.noise - floor) * new_scale**2, (before.noise - floor) * scale**2
    )
    if process.prior.mean_scale:
        np.testing.assert_allclose(new_loc + new_scale * after.mean, loc + scale * before.mean)
    else:
        np.testing.assert_array_equal(moved[:, 3], theta[:, 3])
    # Draws of several updates, (M, W, k), are rescaled alike.
    recent = np.repeat(theta[:, None], 3, 1)
    np.testing.assert_array_equal(
        table.rescaled(recent, 1.5, 0.1)[:, 2], table.rescaled(theta, 1.5, 0.1)
    )


@pytest.mark.parametrize("transform", [Exp(), Exp(0.3), Times(0.5), Logit(4.0)])
def test_transforms_against_central_differences(transform: Exp | Times | Logit) -> None:
    u = np.linspace(-2.0, 2.0, 9)
    difference = (transform.value(u + STEP) - transform.value(u - STEP)) / (2 * STEP)
    np.testing.assert_allclose(transform.slope(u), difference, rtol=1e-8, atol=1e-9)


def test_starts_are_the_priors_own() -> None:
    table = PROCESSES["mixed"].table
    start = table.start(np.array([0.0, 1.0, -1.0, 0.0, 2.0, 0.5]))
    lengthscales = Prior().lengthscale.start(np.array([0.0, 1.0]), 2)
    np.testing.assert_allclose(start, [*lengthscales, -0.7, -4.0, 2.0, 0.5])


# --- sets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengthscale": [0.3, 0.7]}, r"lengthscale must have shape \(M, d\), not \(2,\)"),
        ({"lengthscale": np.array(0.3)}, r"lengthscale must have shape \(M, d\), not \(\)"),
        ({"lengthscale": np.zeros((0, 2))}, r"lengthscale must have shape \(M, d\), not \(0, 2\)"),
        ({"lengthscale": [[0.3, 0.0]] * 3}, "lengthscale must be finite and positive"),
        ({"outputscale": [1.0, 2.0]}, r"outputscale must have shape \(M,\) = \(3,\), not \(2,\)"),
        ({"outputscale": [1.0, -2.0, 1.0]}, "outputscale must be finite and positive"),
        ({"outputscale": [1.0, np.inf, 1.0]}, "outputscale must be finite and positive"),
        ({"noise": [0.1, -1e-9, 0.1]}, r"noise must be finite and positive \(or zero\)"),
        ({"noise": np.array(0.1)}, r"noise must have shape"),
        ({"mean": [0.0, np.nan, 0.0]}, "mean must be finite"),
        ({"rough": [0.0, 1.1, 0.5]}, "rough must be from 0 to 1, not"),
        ({"rough": [0.0, np.nan, 0.5]}, "rough must be from 0 to 1, not"),
        ({"rough": [0.5]}, r"rough must have shape \(M,\) = \(3,\), not \(1,\)"),
        ({"other": [0.5, np.inf, 0.1]}, "other must be finite, not"),
    ],
)
def test_what_is_no_set_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Hyperparameters(**{**HYPERS.values(), **change})


def test_lists_and_no_noise_are_accepted() -> None:
    hypers = Hyperparameters([[1.0, 2.0]], [1.0], [0.0], [-3.0])
    assert (hypers.sets, hypers.parameters) == (1, 2)
    assert hypers.lengthscale.dtype == np.float64
    assert dict(hypers.own) == {}


def test_arrays_are_copied() -> None:
    noise = np.array([0.1])
    hypers = Hyperparameters([[1.0]], [1.0], noise, [0.0])
    noise[0] = 7.0
    assert hypers.noise[0] == 0.1


def test_some_of_them_and_those_of_the_negative() -> None:
    some = HYPERS.some(slice(1, 3))
    assert some.sets == 2
    for name, value in HYPERS.values().items():
        np.testing.assert_array_equal(some.values()[name], value[1:3])
    turned = HYPERS.times(-1.0)
    np.testing.assert_array_equal(turned.mean, -HYPERS.mean)
    assert turned != HYPERS
    assert turned.times(-1.0) == HYPERS


def test_they_show_and_compare() -> None:
    assert repr(HYPERS) == "Hyperparameters(3 sets of 2 length scales)"
    assert repr(HYPERS.some(slice(1))) == "Hyperparameters(1 set of 2 length scales)"
    assert Hyperparameters(**HYPERS.values()) == HYPERS
    assert HYPERS.some(slice(2)) != HYPERS
    named = ("lengthscale", "outputscale", "noise", "mean")
    assert Hyperparameters(**{name: HYPERS.values()[name] for name in named}) != HYPERS
    assert HYPERS != "something else"
