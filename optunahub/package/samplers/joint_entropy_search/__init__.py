"""Joint Entropy Search, by optpair."""

from optpair.integrations.optuna import JESSampler

__all__ = ["JESSampler"]
