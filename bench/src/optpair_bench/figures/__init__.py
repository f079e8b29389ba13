"""Figures: regrets, the paper's pictures and those of the documentation. They need Matplotlib."""
