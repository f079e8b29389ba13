"""Searches among branches of conditional parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpair import Categorical, Float, Int, Space, minimize

SPACE = Space(
    {
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "kernel": Categorical(["linear", "rbf", "poly"]),
        "gamma": Float(1e-3, 10, log=True, when={"kernel": ["rbf", "poly"]}),
        "x": Float(0, 1),
    }
)


def test_a_search_finds_the_best_branch() -> None:
    def loss(p: dict[str, Any]) -> float:
        miss = (p["x"] - 0.3) ** 2
        if p["kernel"] == "linear":
            return miss + 0.3
        miss += (np.log10(p["gamma"]) + 1) ** 2 / 10
        return miss + (0.2 if p["kernel"] == "rbf" else 0.1 * abs(p["degree"] - 4))

    found = [minimize(loss, SPACE, evaluations=20, seed=s, progress=False).x for s in range(4)]
    best = [point for point in found if point["kernel"] == "poly"]
    assert len(best) >= 3  # 7 of 8 seeds do, where chance alone would have a third
    assert all(loss(point) < 0.15 for point in best)
