"""`minimize` and `maximize`: nothing is lost, whatever the objective does."""

from __future__ import annotations

import io
import json
import math
import os
import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpair import Categorical, Optimizer, Settings, Space, Trial, maximize, minimize
from shell_cases import CHEAP, SPACE, TINY, cheap, objective, point, shell

QUICK: dict[str, Any] = {"seed": 0, "progress": False, **CHEAP}


def xs(source: Any) -> list[Any]:
    return [(trial.params["x"], trial.params["c"]) for trial in source.trials]


class StopError(Exception):
    pass


class Flaky:
    """An objective that raises once, at its n-th call."""

    def __init__(self, at: int, error: BaseException) -> None:
        self.at, self.error, self.calls = at, error, 0

    def __call__(self, params: dict[str, Any]) -> float:
        self.calls += 1
        if self.calls == self.at:
            raise self.error
        return objective(params)


def _by_name(x, c):  # type: ignore[no-untyped-def]
    return abs(x) + (c == "a")


def test_the_result() -> None:
    result = minimize(objective, SPACE, 6, **QUICK)
    assert result.x == result.recommendation.params
    assert result.fun == result.recommendation.mean
    assert (result.nfev, len(result.trials), result.success) == (6, 6, True)
    assert [t.value for t in result.trials] == [objective(dict(t.params)) for t in result.trials]
    lines = str(result).splitlines()
    assert lines[0] == "6 evaluations were made"
    assert lines[1:] == str(result.recommendation).splitlines()
    assert repr(result).startswith(f"Result(fun={result.fun:.5g}, x=")


def test_minimising_f_is_maximising_minus_f() -> None:
    low = minimize(objective, SPACE, 6, **QUICK)
    high = maximize(lambda params: -objective(params), SPACE, 6, **QUICK)
    assert xs(low) == xs(high)
    assert low.x == high.x
    assert low.fun == -high.fun
    assert low.recommendation.std == high.recommendation.std
    assert low.recommendation.interval == tuple(-e for e in high.recommendation.interval)[::-1]


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.float64("nan"),
        np.float32("nan"),
        np.float16("inf"),
        np.array(np.nan),
        10**400,
        -1.7e308,
    ],
    ids=repr,
)
def test_what_is_not_finite_is_a_failed_trial(bad: Any) -> None:
    values = iter([1.0, bad, 2.0])
    result = minimize(lambda params: next(values), SPACE, 3, **QUICK)
    assert [trial.state for trial in result.trials] == ["told", "failed", "told"]
    assert str(result).splitlines()[0] == "3 evaluations were made, 1 of them failed"


@pytest.mark.parametrize("bad", [None, "0.3", True, [1.0], np.ones(1), 1j, {"loss": 1}], ids=repr)
def test_what_is_no_number_is_an_error(bad: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    values = iter([1.0, bad])
    with pytest.raises(TypeError, match="what the objective returns must be one real number") as e:
        minimize(lambda params: next(values), SPACE, 3, checkpoint=path, catch=TypeError, **QUICK)
    assert "this trial was cancelled" in e.value.__notes__[0]
    assert ("is a `return` missing?" in str(e.value)) == (bad is None)
    assert [trial.value for trial in e.value.optimizer.trials] == [1.0]  # type: ignore[attr-defined]
    assert len(Optimizer.load(path).trials) == 1


def test_an_exception_of_the_objective_comes_through() -> None:
    error = StopError("boom")
    with pytest.raises(StopError, match="boom") as caught:
        minimize(Flaky(3, error), SPACE, 5, **QUICK)
    assert caught.value is error
    assert error.__notes__[0].startswith("while evaluating {'x': ")
    optimizer = error.optimizer  # type: ignore[attr-defined]
    assert [trial.state for trial in optimizer.trials] == ["told", "told"]


def test_caught_exceptions_are_failed_trials() -> None:
    result = minimize(Flaky(2, StopError()), SPACE, 3, catch=(KeyError, StopError), **QUICK)
    assert [trial.state for trial in result.trials] == ["told", "failed", "told"]
    with pytest.raises(StopError):
        minimize(Flaky(2, StopError()), SPACE, 3, catch=KeyError, **QUICK)


def test_a_failed_trial_says_why() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            return f"a \udc80 in the middle, and then {'more ' * 1000}"

    given: list[Any] = [ZeroDivisionError("by zero"), OddError(), math.nan, 1.0]

    def flaky(params: Any) -> float:
        if isinstance(now := given.pop(0), Exception):
            raise now
        return float(now)

    trials = minimize(flaky, SPACE, 4, catch=Exception, **QUICK).optimizer.trials
    zero, odd, nan, fine = (trial.reason for trial in trials)
    assert (zero, nan, fine) == ("ZeroDivisionError: by zero", "it gave nan", None)
    assert odd is not None
    assert "a \\udc80 in the middle" in odd.encode().decode()
    assert len(odd) < 2100


def test_exceptions_that_take_no_attribute_come_through() -> None:
    class ClosedError(Exception):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "optimizer":
                raise AttributeError(name)
            super().__setattr__(name, value)

    with pytest.raises(ClosedError):
        minimize(Flaky(1, ClosedError()), SPACE, 3, **QUICK)


def test_stop_iteration_of_the_objective_is_no_end() -> None:
    with pytest.raises(StopIteration):
        minimize(Flaky(2, StopIteration()), SPACE, 3, **QUICK)


def test_the_objective_may_change_its_params() -> None:
    def careless(params: dict[str, Any]) -> float:
        value = objective(params)
        params.clear()
        params["x"] = 99
        return value

    assert xs(minimize(careless, SPACE, 4, **QUICK)) == xs(minimize(objective, SPACE, 4, **QUICK))


def test_every_evaluation_failed(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with pytest.raises(RuntimeError, match="all 3 evaluations failed, so there is nothing") as e:
        minimize(lambda params: 1 / 0, SPACE, 3, catch=Exception, checkpoint=path, **QUICK)
    assert isinstance(e.value.__cause__, ZeroDivisionError)  # what went wrong
    assert len(e.value.optimizer.trials) == 3  # type: ignore[attr-defined]
    result = minimize(objective, SPACE, 5, checkpoint=path, **QUICK)  # more of them may succeed
    assert [trial.state for trial in result.trials] == ["failed"] * 3 + ["told"] * 2


def test_callbacks() -> None:
    seen: list[tuple[int, Trial]] = []

    def watch(optimizer: Optimizer, trial: Trial) -> None:
        seen.append((len(optimizer.trials), trial))
        if len(seen) == 2:
            raise StopIteration

    result = minimize(objective, SPACE, 5, callbacks=[watch], **QUICK)
    assert [count for count, _ in seen] == [1, 2]
    assert [trial.state for _, trial in seen] == ["told", "told"]
    assert (result.nfev, result.success) == (2, True)
    assert result.message == "2 evaluations were made, then a callback ended the search"


def test_an_error_of_a_callback_comes_through(tmp_path: Path) -> None:
    path = tmp_path / "run.json"

    def broken(optimizer: Optimizer, trial: Trial) -> None:
        raise StopError

    with pytest.raises(StopError) as caught:
        minimize(objective, SPACE, 5, callbacks=[broken], checkpoint=path, **QUICK)
    assert len(caught.value.optimizer.trials) == 1  # type: ignore[attr-defined]
    assert [trial.state for trial in Optimizer.load(path).trials] == ["told"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), StopError()], ids=repr)
@pytest.mark.parametrize("at", [1, 2, 5])
def test_a_search_that_was_cut_off_goes_on_as_if_it_had_not_been(
    tmp_path: Path, error: BaseException, at: int
) -> None:
    path = tmp_path / "run.json"
    whole = minimize(objective, SPACE, 6, **QUICK)
    cut = Flaky(at, error)
    with pytest.raises(type(error)):
        minimize(cut, SPACE, 6, checkpoint=path, **QUICK)
    resumed = minimize(cut, SPACE, 6, checkpoint=path, **QUICK)
    assert cut.calls == 7
    assert xs(resumed) == xs(whole)
    assert resumed.recommendation == whole.recommendation


def test_a_drawn_seed_survives_a_cut_in_the_first_evaluation(tmp_path: Path) -> None:
    path, asked = tmp_path / "run.json", []
    quick = {**QUICK, "seed": None}

    def cut(params: dict[str, Any]) -> float:
        asked.append(params["x"])
        if len(asked) == 1:
            raise StopError
        return objective(params)

    with pytest.raises(StopError):
        minimize(cut, SPACE, 2, checkpoint=path, **quick)
    minimize(cut, SPACE, 2, checkpoint=path, **quick)
    assert asked[0] == asked[1]


def test_an_interrupt_without_a_checkpoint_loses_nothing() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        minimize(Flaky(4, KeyboardInterrupt()), SPACE, 6, **QUICK)
    optimizer = caught.value.optimizer  # type: ignore[attr-defined]
    assert len(optimizer.trials) == 3
    assert optimizer.recommend().observed.value is not None


def test_pending_trials_of_a_checkpoint_are_cancelled(tmp_path: Path) -> None:
    path, optimizer = tmp_path / "run.json", cheap()
    optimizer.ask()
    optimizer.tell(point(0), 1.0)
    optimizer.save(path)
    result = minimize(objective, SPACE, 3, checkpoint=path, **QUICK)
    assert [trial.state for trial in result.trials] == ["told"] * 3
    assert [trial.id for trial in result.trials] == [1, 2, 3]


def test_a_finished_checkpoint_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    minimize(objective, SPACE, 3, checkpoint=path, **QUICK)
    again = minimize(Flaky(1, StopError()), SPACE, 2, checkpoint=path, **QUICK)
    assert again.message == "3 evaluations were made"


def test_a_checkpoint_of_another_search(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    minimize(objective, SPACE, 2, checkpoint=path, **QUICK)
    before = path.read_bytes()
    for name, change in {
        "seed": {"seed": 1},
        "settings": {"settings": Settings(**{**TINY, "sets": 4})},
        "acquisition": {"acquisition": "jes"},
        "hyperparameters": {"hyperparameters": "map"},
    }.items():
        with pytest.raises(ValueError, match=f"holds a search with another {name}"):
            minimize(objective, SPACE, 3, checkpoint=path, **{**QUICK, **change})
    with pytest.raises(ValueError, match="another direction"):
        maximize(objective, SPACE, 3, checkpoint=path, **QUICK)
    with pytest.raises(ValueError, match="with inferred noise, not noise=0; give the same"):
        minimize(objective, SPACE, 3, checkpoint=path, **QUICK, noise=0)
    other = type(SPACE)({"x": SPACE["x"]})
    with pytest.raises(ValueError, match="another space"):
        minimize(objective, other, 3, checkpoint=path, progress=False)
    assert path.read_bytes() == before
    assert minimize(objective, SPACE, 2, checkpoint=path, progress=False).nfev == 2  # left out


def test_a_checkpoint_keeps_the_noise(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    whole = minimize(objective, SPACE, 6, noise=0.3, **QUICK)
    minimize(objective, SPACE, 4, checkpoint=path, noise=0.3, **QUICK)
    with pytest.raises(ValueError, match=r"a search with noise=0.3, not noise=0; give the same"):
        minimize(objective, SPACE, 6, checkpoint=path, noise=0, **QUICK)
    again = minimize(objective, SPACE, 6, checkpoint=path, **QUICK)  # left out
    assert again.optimizer.noise == 0.3
    assert again.trials == whole.trials
    assert again.recommendation == whole.recommendation
    assert minimize(objective, SPACE, 6, **QUICK).recommendation != whole.recommendation


def test_a_checkpoint_whose_choices_only_look_the_same(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    one, other = (Space({"flag": Categorical(c)}) for c in ([True, False], [1, 0]))
    quick = {"progress": False, "acquisition": "random"}
    minimize(lambda p: float(p["flag"]), one, 2, checkpoint=path, **quick)
    with pytest.raises(ValueError, match="another space"):
        minimize(lambda p: float(p["flag"]), other, 3, checkpoint=path, **quick)


def test_two_searches_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    path, never = tmp_path / "run.json", Flaky(1, StopError())

    def within(params: dict[str, Any]) -> float:
        with pytest.raises(BlockingIOError, match="another search that is running"):
            minimize(never, SPACE, 3, checkpoint=path, **QUICK)
        return objective(params)

    assert minimize(within, SPACE, 2, checkpoint=path, **QUICK).nfev == 2
    assert never.calls == 0
    assert list(tmp_path.iterdir()) == [path]


def test_a_bad_checkpoint_is_found_before_anything_is_evaluated(tmp_path: Path) -> None:
    never = Flaky(1, StopError())
    with pytest.raises(FileNotFoundError, match="no folder"):
        minimize(never, SPACE, 3, checkpoint=tmp_path / "missing" / "run.json", **QUICK)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        minimize(never, SPACE, 3, checkpoint=tmp_path / "run.json", **QUICK)
    assert never.calls == 0
    assert (tmp_path / "run.json").read_text() == "{"


def test_checkpoints_hold_every_trial_as_it_ends(tmp_path: Path) -> None:
    path, counts = tmp_path / "run.json", []

    def watch(params: dict[str, Any]) -> float:
        counts.append(len(json.loads(path.read_text())["trials"]))
        return objective(params)

    minimize(watch, SPACE, 3, checkpoint=path, **QUICK)
    assert counts == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "kind", "match"),
    [
        ({"evaluations": 0}, ValueError, "evaluations must be an int of at least 1"),
        ({"evaluations": 2.0}, TypeError, "evaluations must be an int of at least 1"),
        ({"evaluations": True}, TypeError, "evaluations must be an int of at least 1"),
        ({"objective": None}, TypeError, "objective must be callable"),
        (
            {"objective": _by_name},
            TypeError,
            r"one argument, a dict .* _by_name\(x, c\); .* lambda params: _by_name\(\*\*params\)",
        ),
        ({"objective": lambda: 0.0}, TypeError, "objective must take one argument"),
        ({"space": {"x": (0, 1)}}, TypeError, "space must be a Space"),
        ({"callbacks": print}, TypeError, "callbacks must be a list of functions"),
        ({"callbacks": [None]}, TypeError, "callbacks must be a list of functions"),
        ({"catch": "ValueError"}, TypeError, "catch must be an Exception class"),
        ({"catch": [ValueError]}, TypeError, "catch must be an Exception class"),
        ({"catch": KeyboardInterrupt}, TypeError, "catch must be an Exception class"),
        ({"evals": 3}, TypeError, "evals"),
        (
            {"direction": "maximize"},
            TypeError,
            "minimize takes no direction, and 'maximize' was given: call minimize or maximize",
        ),
        (
            {"direction": "minimize", "outcomes": {"a": "minimize", "b": "maximize"}},
            TypeError,
            "minimize takes no direction, .* or give each objective its own direction",
        ),
    ],
)
def test_arguments(change: dict[str, Any], kind: type[Exception], match: str) -> None:
    arguments = {"objective": objective, "space": SPACE, "evaluations": 2, **QUICK, **change}
    with pytest.raises(kind, match=match):
        minimize(**arguments)


@pytest.mark.parametrize(
    "takes_it",
    [lambda params, *, scale=1.0: 0.0, lambda *args: 0.0, dict.__len__, Flaky(9, StopError())],
    ids=["options", "any", "of C", "an object"],
)
def test_objectives_of_every_kind_are_taken(takes_it: Any) -> None:
    result = minimize(takes_it, SPACE, 1, **QUICK)
    assert result.message == "1 evaluation was made"


def test_numpy_counts() -> None:
    assert minimize(objective, SPACE, np.int64(2), **QUICK).nfev == 2  # type: ignore[arg-type]


def test_progress(capfd: pytest.CaptureFixture[str]) -> None:
    def chatty(params: dict[str, Any]) -> float:
        print("mine")
        return objective(params)

    minimize(chatty, SPACE, 2, **QUICK)
    out, err = capfd.readouterr()
    assert (out, err) == ("mine\nmine\n", "")
    minimize(chatty, SPACE, 2, **{**QUICK, "progress": True})
    out, err = capfd.readouterr()
    assert out == "mine\nmine\n"
    assert "2/2" in err
    assert "best observed" in err


UNWRITABLE = {"full": "2>/dev/full", "closed": "2>&-", "gone": "2> >(exec true)"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="shells of Linux")
@pytest.mark.parametrize("redirection", UNWRITABLE.values(), ids=UNWRITABLE.keys())
def test_a_standard_error_that_cannot_be_written_to_loses_nothing(redirection: str) -> None:
    script = (
        "import time; time.sleep(0.1)\n"  # until the reader of the pipe is gone
        "from optpair import Float, Space, minimize\n"
        "space = Space({'x': Float(-1, 1)})\n"
        "result = minimize(lambda p: p['x'] ** 2, space, 3, seed=0, acquisition='random')\n"
        "print(result.nfev, 'made')"
    )
    found = shell(f"{shlex.quote(sys.executable)} -c {shlex.quote(script)} {redirection}")
    assert (found.stdout, found.returncode) == ("3 made\n", 0)


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
def test_a_terminal_that_has_gone_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar is drawn as the search goes, also by a thread of its own."""
    ours, theirs = os.openpty()
    terminal = open(theirs, "w")  # noqa: SIM115
    monkeypatch.setattr(sys, "stderr", terminal)

    def hang_up(params: dict[str, Any]) -> float:
        with suppress(OSError):
            os.close(ours)
        time.sleep(0.2)
        return objective(params)

    result = minimize(hang_up, SPACE, 2, **{**QUICK, "progress": True})
    with suppress(OSError):  # what is left in its buffer
        terminal.close()
    assert result.nfev == 2


@pytest.mark.parametrize("stream", [None, "closed"])
def test_no_standard_error_at_all(stream: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed if stream else None)
    monkeypatch.setattr(sys, "stdout", closed if stream else None)
    assert minimize(objective, SPACE, 1, **{**QUICK, "progress": True}).nfev == 1
