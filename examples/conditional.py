"""Tune a choice between two models, each with parameters of its own.

A point has the parameters of the model that was chosen, and no others.
"""

import argparse

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from optpair import Categorical, Float, Int, Space, maximize

SPACE = Space(
    {
        "model": Categorical(["svm", "forest"]),
        "kernel": Categorical(["rbf", "poly"], when={"model": "svm"}),
        "C": Float(0.1, 1000, log=True, when={"model": "svm"}),
        "degree": Int(2, 4, when={"kernel": "poly"}),
        "max_depth": Int(2, 12, when={"model": "forest"}),
    }
)


def score(params):
    """The mean R² over three folds."""
    own = {name: value for name, value in params.items() if name != "model"}
    if params["model"] == "svm":
        model = make_pipeline(StandardScaler(), SVR(**own))
    else:
        model = RandomForestRegressor(n_estimators=20, random_state=0, **own)
    return cross_val_score(model, *load_diabetes(return_X_y=True), cv=3).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=15)
    trials = parser.parse_args().trials
    print(maximize(score, SPACE, evaluations=trials, seed=0, progress=False))
