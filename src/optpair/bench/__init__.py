"""Benchmarks: the paper's experiments, and seconds an ask beside other libraries.

Run them with `optpair bench run` and `optpair bench speed`.
"""
