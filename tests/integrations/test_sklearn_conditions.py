"""Conditional parameters in searches over estimators: each is set where it is active."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.svm import SVR

from optpair import Categorical, Float, Int, Space
from optpair.integrations.sklearn import JESSearchCV
from optpair.integrations.sklearn.space import NumberedSpace


def test_each_trial_sets_what_is_active() -> None:
    X, y = load_diabetes(return_X_y=True)
    space = Space(
        {
            "kernel": Categorical(["linear", "poly"]),
            "degree": Int(2, 3, when={"kernel": "poly"}),
            "C": Float(1, 100, log=True),
        }
    )
    search = JESSearchCV(SVR(), space, n_iter=6, random_state=0, cv=2).fit(X[:60], y[:60])
    for params in search.cv_results_["params"]:
        assert space.check(params) == params
    assert {len(params) for params in search.cv_results_["params"]} == {2, 3}
    assert search.cv_results_["param_degree"].mask.any()
    assert space.check(search.best_params_) == search.best_params_


GRIDS: list[dict[str, Any]] = [
    {"kernel": ["linear"], "C": Float(1, 100, log=True)},
    {"kernel": ["poly"], "C": Float(1, 100, log=True), "degree": [2, 3], "coef0": [0.0]},
    {"kernel": ["rbf", "sigmoid"], "C": Float(0.1, 10, log=True), "gamma": Float(0.01, 1)},
]


def fits(params: dict[str, Any]) -> bool:
    """Whether parameters are those of one of the dicts, each with a value of its own there."""
    names = {"linear": {"C"}, "poly": {"C", "degree", "coef0"}}
    expected = names.get(params["kernel"], {"C", "gamma"}) | {"kernel"}
    low, high = (1, 100) if params["kernel"] in names else (0.1, 10)
    return set(params) == expected and low <= params["C"] <= high


def test_a_list_of_dicts_is_a_choice_between_them(tmp_path: Path) -> None:
    X, y = load_diabetes(return_X_y=True)
    search = JESSearchCV(SVR(), GRIDS, n_iter=14, random_state=0, cv=2).fit(X[:60], y[:60])
    tried = search.cv_results_["params"]
    assert all(map(fits, tried))
    assert {params["kernel"] for params in tried} >= {"linear", "poly"}
    assert fits(search.best_params_)
    assert all(map(fits, search.belief().params))
    assert all(
        p.get("coef0") == 0.0 and p["degree"] in (2, 3) for p in tried if p["kernel"] == "poly"
    )
    assert search.best_estimator_.kernel == search.best_params_["kernel"]
    search.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "kernel = poly" in page
    assert "degree" in page


def test_what_dicts_have_alike_is_one_parameter() -> None:
    space = NumberedSpace(GRIDS).space
    assert list(space) == ["grid", "C", "degree", "kernel [2]", "C [2]", "gamma"]
    assert space["C"].when == {"grid": (0, 1)}
    assert space["gamma"].when == {"grid": (2,)}
    nested = NumberedSpace(
        [{}, {"a": Categorical(["p", "q"]), "grid": Int(1, 3, when={"a": "p"}), "b": [1, 2]}]
    )
    assert nested.space["grid"].when == {"a": ("p",), "grid_": (1,)}
    assert nested.named({"grid_": 0}) == {}
    assert nested.named({"grid_": 1, "a": "q", "b": 2}) == {"a": "q", "b": 2}
    alone = NumberedSpace([{"a": [1, 2, 5]}])
    assert list(alone.space) == ["a"]
    arrays = NumberedSpace([{"a": [np.zeros(2), np.ones(2)]}, {"a": [np.zeros(2), np.ones(2)]}])
    assert list(arrays.space) == ["grid", "a", "a [1]"]


def test_conditions_name_what_the_lists_of_a_dict_have() -> None:
    """Lists of objects are places to the optimizer; a condition is on the objects."""
    given = {
        "kernel": ["rbf", "poly", "linear"],
        "shrinking": [True, False],
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "gamma": Float(0.01, 1, when={"kernel": ["poly", "rbf"], "shrinking": True}),
        "extra": Float(0, 1, when={"size": [10, 1]}),
        "size": [1, 5, 10],
        "alone": ["x"],
        "always": Float(0, 1, when={"alone": "x"}),
    }
    numbered = NumberedSpace(given)
    when = {name: p.when for name, p in numbered.space.items() if p.when}
    assert when == {
        "degree": {"kernel": (1,)},
        "gamma": {"kernel": (0, 1), "shrinking": (0,)},
        "extra": {"size": (1, 10)},
    }
    params = {"kernel": 1, "shrinking": 1, "degree": 3, "size": 5, "always": 0.5}
    assert numbered.named(numbered.space.check(params)) == {
        "kernel": "poly", "shrinking": False, "degree": 3, "size": 5, "alone": "x", "always": 0.5,
    }  # fmt: skip
    grids = NumberedSpace([given, {"kernel": ["sigmoid"]}])
    assert grids.space["degree"].when == {"kernel": (1,), "grid": (0,)}


def test_a_search_with_a_condition_on_a_list() -> None:
    X, y = load_diabetes(return_X_y=True)
    given = {"kernel": ["linear", "poly"], "degree": Int(2, 3, when={"kernel": "poly"})}
    search = JESSearchCV(SVR(), given, n_iter=3, random_state=0, cv=2).fit(X[:60], y[:60])
    for params in search.cv_results_["params"]:
        assert ("degree" in params) == (params["kernel"] == "poly")
    assert search.cv_results_["param_degree"].mask.any()


@pytest.mark.parametrize(
    ("parent", "values", "message"),
    [
        (["rbf", "poly"], "plly", r"'kernel' must be one of \['rbf', 'poly'\], not 'plly'"),
        (["rbf"], "poly", r"'kernel' must be one of \['rbf'\], not 'poly'"),
        ([1, 0], True, r"'kernel' must be one of \[1, 0\], not True"),
    ],
)
def test_conditions_that_never_hold_are_refused(parent: Any, values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"when of 'degree': {message}"):
        NumberedSpace({"kernel": parent, "degree": Int(2, 5, when={"kernel": values})})


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([], ValueError, r"not \[\]"),
        ([{"C": [1, 2]}, 3], TypeError, "or a list of such dicts"),
        ("C", TypeError, "or a list of such dicts"),
        ([{"C": [1, 2]}, {"C": []}], ValueError, "something to choose from"),
        (
            [{"C": [1, 2]}, Space({"a": Float(0, 1), "b": Float(0, 1)}, where=["a <= b"])],
            ValueError,
            "give it alone",
        ),
    ],
)
def test_lists_of_no_use_are_refused(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        NumberedSpace(given)


@pytest.mark.parametrize("batch", [1, 4])
def test_only_the_rows_of_a_shelf_are_tried_and_a_search_ends_with_them(batch: int) -> None:
    X, y = load_diabetes(return_X_y=True)
    rows = [{"C": c, "kernel": kernel} for c in (0.1, 1.0, 50.0) for kernel in ("linear", "rbf")]
    space = Space.of_rows(rows, repeat=False)
    options: dict[str, Any] = {"random_state": 0, "cv": 2, "batch": batch}
    search = JESSearchCV(SVR(), space, n_iter=9, **options).fit(X[:60], y[:60])
    tried = search.cv_results_["params"]
    assert sorted(map(str, tried)) == sorted(map(str, rows))
    assert search.best_params_ in rows
    again = JESSearchCV(SVR(), Space.of_rows(rows), n_iter=4, **options).fit(X[:60], y[:60])
    assert all(params in rows for params in again.cv_results_["params"])
