"""scikit-learn: `JESSearchCV(estimator, space).fit(X, y)`."""

try:
    import sklearn as _sklearn  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "JESSearchCV needs scikit-learn: pip install 'optpair[sklearn]'", name="sklearn"
    ) from error

from optpair.integrations.sklearn.search import JESSearchCV

__all__ = ["JESSearchCV"]
