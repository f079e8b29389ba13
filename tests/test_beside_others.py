"""What the README's table says of other libraries is so, where they are installed.

To check it, run this file in an environment that has them.
"""

from __future__ import annotations

from typing import Any

import pytest


def test_botorch_takes_constraints_linear_limits_and_several_objectives() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("botorch")
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.optim import optimize_acqf

    torch.manual_seed(0)
    X = torch.rand(12, 2, dtype=torch.double)
    outcomes = [-((X[:, :1] - 0.9) ** 2) - X[:, 1:], 30 * X[:, :1] - 12]
    model = ModelListGP(*(SingleTaskGP(X, own) for own in outcomes))
    options: dict[str, Any] = {
        "bounds": torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double),
        "q": 1,
        "num_restarts": 2,
        "raw_samples": 32,
    }
    limited = qLogNoisyExpectedImprovement(
        model,
        X,
        objective=GenericMCObjective(lambda Z, X=None: Z[..., 0]),
        constraints=[lambda Z: Z[..., 1]],
    )
    half = (torch.tensor([0, 1]), -torch.ones(2, dtype=torch.double), -0.5)  # x0 + x1 <= 0.5
    x, _ = optimize_acqf(limited, inequality_constraints=[half], **options)
    assert float(x.sum()) <= 0.5 + 1e-6
    front = qLogNoisyExpectedHypervolumeImprovement(model, ref_point=[-3.0, -12.0], X_baseline=X)
    assert optimize_acqf(front, **options)[0].shape == (1, 2)


def test_botorch_has_a_model_of_conditional_parameters() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("botorch")
    from botorch.models.hierarchical.conditional_kernel_gp import HierarchicalConditionalKernelGP

    torch.manual_seed(0)
    X = torch.rand(10, 3, dtype=torch.double)
    X[:, 0] = (X[:, 0] > 0.5).double()
    y = torch.where(X[:, :1] == 0, X[:, 1:2], X[:, 2:])
    model = HierarchicalConditionalKernelGP(X, y, hierarchical_dependencies={0: {0: [1], 1: [2]}})
    moved = X[:1].clone()
    inactive = 2 if X[0, 0] == 0 else 1
    moved[0, inactive] = 1 - moved[0, inactive]
    assert torch.allclose(model.posterior(X[:1]).mean, model.posterior(moved).mean)


def test_ax_looks_for_noisy_expected_improvement_and_knows_conditional_parameters() -> None:
    pytest.importorskip("ax")
    from ax.api.client import Client
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

    client = Client(random_seed=0)
    depends = {"poly": ["degree"]}
    client.configure_experiment(
        parameters=[
            ChoiceParameterConfig(
                name="kernel",
                parameter_type="str",
                values=["rbf", "poly"],
                is_ordered=False,
                dependent_parameters=depends,
            ),
            RangeParameterConfig(name="degree", parameter_type="int", bounds=(2, 5)),
        ]
    )
    client.configure_optimization(objective="-loss")
    tried = []
    for _ in range(8):
        for index, params in client.get_next_trials(max_trials=1).items():
            assert ("degree" in params) == (params["kernel"] == "poly")
            tried.append(dict(params))
            client.complete_trial(
                trial_index=index, raw_data={"loss": float(params.get("degree", 3))}
            )
    assert client.get_best_parameterization()[0] in tried
    generator = client._generation_strategy._nodes[-1]._fitted_adapter.generator
    assert type(generator.surrogate.model).__name__ == "SingleTaskGP"
    assert generator._botorch_acqf_class.__name__ == "qLogNoisyExpectedImprovement"


def test_gpsampler_samples_conditional_parameters_independently() -> None:
    pytest.importorskip("torch")
    import optuna

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return x + (trial.suggest_float("y", 0, 1) if trial.number % 2 else 0.5)

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.GPSampler(seed=0, n_startup_trials=2)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=4)
    assert set(sampler.infer_relative_search_space(study, study.trials[-1])) == {"x"}


def test_smac_has_a_forest_and_returns_a_trial(tmp_path: Any) -> None:
    pytest.importorskip("smac")
    from ConfigSpace import (
        Categorical,
        ConfigurationSpace,
        EqualsCondition,
        Float,
        ForbiddenLessThanRelation,
        Integer,
    )
    from smac import HyperparameterOptimizationFacade, Scenario

    space = ConfigurationSpace(seed=0)
    kernel, degree = Categorical("kernel", ["rbf", "poly"]), Integer("degree", (2, 5))
    a, b = Float("a", (0, 1)), Float("b", (0, 1))
    space.add([kernel, degree, a, b])
    space.add(EqualsCondition(degree, kernel, "poly"), ForbiddenLessThanRelation(a, b))
    scenario = Scenario(space, n_trials=6, seed=0, output_directory=tmp_path)
    smac = HyperparameterOptimizationFacade(
        scenario, lambda config, seed=0: float(config["a"]), overwrite=True, logging_level=40
    )
    best = smac.optimize()
    tried = smac.runhistory.get_configs()
    assert best in tried
    assert all(("degree" in c) == (c["kernel"] == "poly") and c["a"] >= c["b"] for c in tried)
    assert type(smac._model).__name__ == "RandomForest"
    assert type(smac._acquisition_function).__name__ == "EI"
