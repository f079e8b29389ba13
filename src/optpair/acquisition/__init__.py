"""Acquisition functions (in transit)."""
