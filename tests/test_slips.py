"""Slips in whole searches: one value that was told times ten."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from optpair import Float, Optimizer, Settings, Space

SPACE = Space({"u": Float(0, 1), "v": Float(0, 1)})


@functools.cache
def typo(settings: Settings | None = None) -> tuple[Optimizer, list[str]]:
    """Fifteen trials, the tenth of which was told times ten."""
    rng = np.random.default_rng(0)
    optimizer = Optimizer(SPACE, direction="maximize", seed=0, settings=settings)
    kinds = []
    for i in range(15):
        trial = optimizer.ask()
        kinds.append(optimizer.info.kind)
        u, v = trial.params["u"], trial.params["v"]
        value = 50 - 80 * ((u - 0.3) ** 2 + (v - 0.6) ** 2) + 0.5 * rng.standard_normal()
        optimizer.tell(trial, 10 * value if i == 9 else value)
    return optimizer, kinds


def test_one_typo_is_asked_for_again_and_not_believed() -> None:
    optimizer, kinds = typo()
    assert [i for i, kind in enumerate(kinds) if kind == "confirm"] == [4, 10]  # the best, the typo
    answer = optimizer.recommend()
    low, high = answer.interval
    assert 45 < low < 50 < high < 55
    assert optimizer.belief().gap < 5
    assert [doubt.trial.id for doubt in answer.doubted] == [9]
    assert 0 < answer.doubted[0].expected < 50
    assert answer.observed.id != 9
    told = optimizer.trials[9].value
    assert f"doubted        trial 9: {told:.5g} is far from the " in str(answer)


def test_a_doubt_stands_on_the_page_and_is_no_green_light(tmp_path: Path) -> None:
    optimizer, _ = typo()
    page = tmp_path / "page.html"
    verdict = optimizer.report(page)["verdict"]
    told = optimizer.trials[9].value
    assert f"Trial 9: {told:.4g} is far from the" in page.read_text(encoding="utf-8")
    assert not verdict.startswith("Going on is hardly worth it")


def test_without_doubt_it_is_believed() -> None:
    optimizer, kinds = typo(Settings(doubt=False, repeat=False))
    assert "confirm" not in kinds
    assert optimizer.recommend().interval[1] > 60
