"""Benchmarks of optpair: the paper's experiments, and seconds per ask beside other libraries.

Run them with `optpair bench run` and `optpair bench speed`.
"""
