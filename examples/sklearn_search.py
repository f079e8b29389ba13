"""A scikit-learn pipeline tuned by cross-validation, and what the search is worth on new data.

    pip install '.[sklearn]'
    python examples/sklearn_search.py --evaluations 20

With `n_jobs=-1, batch=4` the folds of four trials at a time share the cores; inside
`joblib.parallel_config(backend="dask")`, they share a Dask cluster.
"""

from __future__ import annotations

import argparse

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from optpair import Float
from optpair.integrations.sklearn import JESSearchCV

SPACE = {"svc__C": Float(1e-2, 1e3, log=True), "svc__gamma": Float(1e-5, 1.0, log=True)}


def main(evaluations: int) -> None:
    """Search on a part of the digits, and score on the rest."""
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, train_size=400, stratify=y, random_state=0)
    model = make_pipeline(StandardScaler(), SVC())
    search = JESSearchCV(model, SPACE, n_iter=evaluations, random_state=0).fit(X, y)
    print(search.recommendation_)
    print(f"accuracy on new data: {search.score(X_new, y_new):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=20)
    main(**vars(parser.parse_args()))
