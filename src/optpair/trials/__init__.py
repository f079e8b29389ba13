"""Trials: what was asked and told, and the arrays that the engine sees."""
