"""Experiments, their runs, and the rows that runs leave on disk."""
