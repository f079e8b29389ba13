"""Benchmarks: regret on tasks whose optimum is known, and seconds an ask beside other libraries.

Run them with `optpair bench regret` and `optpair bench speed`.
"""
