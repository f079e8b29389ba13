"""Boards: the model is asked once per change, storages may go away, and many may read at once."""

from __future__ import annotations

import gc
import shutil
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState, create_trial
from watch_cases import SPACE, add, fetch, serving, study_file, until

from optpair import Constraint, Optimizer
from optpair.engine.answers import Answers
from optpair.integrations.optuna.attributes import FAILED, OUTPUT, revise
from optpair.integrations.optuna.model import StudyModel
from optpair.studies.config import load
from optpair.studies.storage import open_study
from optpair.watch import boards, page
from optpair.watch.boards import Board, Pace
from optpair.watch.page import Reader
from optpair.watch.sources import Failure, Saved, Source, View
from optpair.watch.stored import Stored
from optpair.watch.targets import sources
from shell_cases import SPACE as CASES
from shell_cases import cheap, filled, point


def board_of(source: Source, rest: float = 0.0) -> Board:
    return Board(source, Pace(rest), threading.Condition())


def refresh(board: Board) -> None:
    board.look()
    board.ask()


@pytest.fixture
def study(tmp_path: Path) -> optuna.Study:
    study = open_study(load(study_file(tmp_path, "journal:///s.log")))
    for i in range(5):
        add(study, i)
    return study


def stored(folder: Path) -> Stored:
    file = load(folder / "study.toml")
    return Stored(file.storage, file.name, file)


def test_the_model_is_asked_once_per_change(study: optuna.Study, tmp_path: Path) -> None:
    board = board_of(stored(tmp_path))
    for _ in range(3):
        refresh(board)
    assert board.asked == 1
    first = board.version
    trial = study.ask(SPACE)  # nothing to learn from, but to be seen
    refresh(board)
    assert board.asked == 1
    assert board.version != first
    assert [t.number for t in board.snapshot.view.running] == [5]  # type: ignore[union-attr]
    assert ">running</td>" in board.snapshot.report
    study.tell(trial, 0.5)
    refresh(board)
    revise(study, 0, 7.0)
    refresh(board)
    refresh(board)
    assert board.asked == 3
    assert len(board.snapshot.subject.told) == 6  # type: ignore[union-attr]
    assert board.snapshot.subject.told[0].value == 7.0  # type: ignore[union-attr]
    assert "Recommended" in board.snapshot.report


def test_failures_come_with_their_reasons(study: optuna.Study, tmp_path: Path) -> None:
    failed = create_trial(
        state=TrialState.FAIL,
        params={"x": 0.0, "c": "a"},
        distributions=SPACE,
        user_attrs={OUTPUT: "exit code 1\nepoch 3\nno gpu"},
        system_attrs={FAILED: True},
    )
    study.add_trial(failed)
    view = stored(tmp_path).read()
    assert view.failures == (Failure(5, "exit code 1: no gpu"),)
    assert view.counts == {"told": 5, "failed": 1}
    assert (view.evaluations, view.paused) == (12, False)


def test_boards_rest_in_proportion_to_their_work() -> None:
    pace = Pace(rest=3.0)
    with pace.turn() as mine:
        assert mine
        with pace.turn() as another:
            assert not another
        begun = time.thread_time()
        while time.thread_time() - begun < 0.05:
            pass
    with pace.turn() as mine:
        assert not mine
    assert 0.1 < pace._next - time.monotonic() < 1.0


def test_nothing_is_read_while_nobody_looks(
    study: optuna.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "INTERVAL", 0.02)
    monkeypatch.setattr(boards, "LOOKED_AT", 0.1)
    source, reads = stored(tmp_path), list[View]()

    def read() -> View:
        reads.append(View(None, {}))
        return reads[-1]

    monkeypatch.setattr(source, "read", read)
    board, over = board_of(source), threading.Event()
    thread = threading.Thread(target=board.follow, args=(over,))
    thread.start()
    try:
        time.sleep(0.1)
        assert reads == []
        board.want()
        until(lambda: len(reads) > 0)
        time.sleep(0.4)
        count = len(reads)
        time.sleep(0.2)
        assert len(reads) == count
    finally:
        over.set()
        board.wake()
        thread.join(5)


def test_a_storage_that_goes_away_comes_back(tmp_path: Path) -> None:
    file = load(study_file(tmp_path))
    study = open_study(file)
    for i in range(3):
        add(study, i)
    board = board_of(stored(tmp_path))
    refresh(board)
    place, aside = tmp_path / "study.db", tmp_path / "aside.db"
    place.rename(aside)
    refresh(board)
    assert f"there is no file {place}" in board.snapshot.away
    assert board.snapshot.since
    assert "Recommended" in board.snapshot.report  # what was known stays
    assert not place.exists()  # and no empty file is made
    aside.rename(place)
    add(study, 3)
    refresh(board)
    assert board.snapshot.away == board.snapshot.since == ""
    assert len(board.snapshot.subject.told) == 4  # type: ignore[union-attr]


def test_a_file_that_was_replaced_is_opened_anew(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    add(optuna.create_study(study_name="s", storage=url), 0)
    other = optuna.create_study(study_name="s", storage=f"sqlite:///{tmp_path}/b.db")
    for i in range(2):
        add(other, i)
    source = Stored(url, "s")
    assert source.read().counts == {"told": 1}
    (tmp_path / "b.db").replace(tmp_path / "a.db")
    assert source.read().counts == {"told": 2}


def test_a_model_that_cannot_be_asked_is_a_problem_and_no_end(
    study: optuna.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = board_of(stored(tmp_path))
    monkeypatch.setattr(boards, "gather", lambda subject: 1 / 0)
    refresh(board)
    assert board.snapshot.problem == "division by zero"
    refresh(board)
    assert board.asked == 1  # not at once again
    monkeypatch.undo()
    board._again = 0.0
    refresh(board)
    assert board.snapshot.problem == ""
    assert "Recommended" in board.snapshot.report


def test_a_saved_run_that_changes(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    optimizer = filled(cheap(), [0.5, 0.2, 0.4])
    board = board_of(Saved(path))
    refresh(board)
    assert "No such file" in board.snapshot.away
    optimizer.save(path)
    refresh(board)
    assert board.snapshot.view.counts == {"told": 3}  # type: ignore[union-attr]
    trial = optimizer.ask()
    optimizer.save(path)
    refresh(board)
    assert board.asked == 1
    assert [t.number for t in board.snapshot.view.running] == [3]  # type: ignore[union-attr]
    optimizer.tell(trial, failed=True)
    optimizer.save(path)
    refresh(board)
    assert board.asked == 2
    assert board.snapshot.view.failures == (Failure(3),)  # type: ignore[union-attr]
    path.write_text("{}")
    refresh(board)
    assert "no saved optimizer" in board.snapshot.away
    with pytest.raises(ValueError, match="no worker reads an order to stop"):
        Saved(path).give("stop")


def test_reasons_and_notes_of_a_saved_run(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    optimizer = filled(cheap(), [0.5, 0.2])
    optimizer.tell(point(2), failed=True, reason="Traceback:\n  <no gpu>", notes={"by": "Ann"})
    optimizer.save(path)
    board = board_of(Saved(path))
    refresh(board)
    text = page.one(board, 0, Reader(), alone=True)
    assert "<strong>trial 2</strong> &lt;no gpu&gt;<code>by: Ann</code>" in text
    optimizer.revise(0, 0.5, notes={"by": "Bob"})  # nothing to learn from, but to be seen
    optimizer.save(path)
    refresh(board)
    assert board.asked == 1
    assert "<td>Bob</td>" in board.snapshot.report


OUTCOMES: dict[str, Any] = {
    "feasible": {"loss": "minimize", "latency": Constraint(high=20)},
    "front": {"loss": "minimize", "energy": "minimize"},
}


@pytest.mark.parametrize("goal", list(OUTCOMES))
def test_a_saved_run_with_several_outcomes(goal: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    optimizer = Optimizer(CASES, outcomes=OUTCOMES[goal], seed=0)
    loss, other = OUTCOMES[goal]
    board = board_of(Saved(path))
    optimizer.save(path)
    refresh(board)
    assert "Nothing to recommend yet" in board.snapshot.report
    optimizer.tell(point(0), {loss: 0.25, other: 12.5})
    optimizer.tell(point(1), {other: 13.75})  # the only value is not that of the objective
    optimizer.tell(point(2), failed=True, reason="no gpu", notes={"by": "Ann"})
    optimizer.ask()
    optimizer.save(path)
    refresh(board)
    text = page.one(board, 0, Reader(), alone=True)
    assert "1 trial out" in text
    assert "2 told, 1 failed, 1 pending" in text
    assert "<strong>trial 2</strong> no gpu<code>by: Ann</code>" in text
    assert ("The best compromises" if goal == "front" else "Beside the limits") in text
    assert (board.asked, board.snapshot.away, board.snapshot.problem) == (2, "", "")
    card = page.several([board, board], Reader(), "")
    assert (f"between {loss} and {other}" if goal == "front" else "meets all limits with") in card
    refresh(board)
    assert board.asked == 2  # nothing has changed
    optimizer.revise(1, {other: 13.0})
    optimizer.save(path)
    refresh(board)
    assert board.asked == 3


def test_a_file_that_changes_between_one_outcome_and_several(tmp_path: Path) -> None:
    path, one, several = (tmp_path / name for name in ("run.json", "one.json", "several.json"))
    filled(cheap(), [0.5, 0.2]).save(one)
    Optimizer(CASES, outcomes=OUTCOMES["front"], seed=0).save(several)
    board = board_of(Saved(path))
    for _ in range(2):
        shutil.copy(one, path)
        refresh(board)
        assert board.snapshot.problem == ""
        assert "Recommended" in board.snapshot.report
        shutil.copy(several, path)
        refresh(board)
        assert board.snapshot.found is None
        assert "Nothing to recommend yet" in board.snapshot.report


def test_many_read_while_trials_are_added(
    study: optuna.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "INTERVAL", 0.02)
    wrong: list[str] = []
    over = threading.Event()
    with serving([stored(tmp_path)]) as it:

        def read() -> None:
            while not over.is_set():
                status, text, _ = fetch(it)
                if status != 200 or not text.endswith("</html>\n") or "cannot be read" in text:
                    wrong.append(text)

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        for i in range(5, 12):
            add(study, i)
            time.sleep(0.05)
        until(lambda: "12 of 12 evaluations" in fetch(it)[1])
        until(lambda: not it.hall.boards[0].snapshot.behind)
        over.set()
        for reader in readers:
            reader.join(10)
        assert it.hall.boards[0].snapshot.problem == ""
        assert it.hall.boards[0].asked <= 8
    assert wrong == []


def test_a_study_that_optuna_made_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/foreign.db"
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(study_name="tpe", storage=url)
    study.optimize(lambda trial: trial.suggest_float("y", 0, 1), n_trials=3)
    two = optuna.create_study(study_name="two", storage=url, directions=["minimize", "maximize"])
    two.optimize(lambda trial: (trial.suggest_float("y", 0, 1), float("inf")), n_trials=1)
    found = sources([str(tmp_path / "foreign.db")])
    assert [source.name for source in found] == ["tpe", "two"]
    view = found[0].read()
    assert (view.counts, view.evaluations, view.paused) == ({"told": 3}, None, None)
    with pytest.raises(ValueError, match="has no workers of optpair run"):
        found[0].give("pause")
    board = board_of(found[1])
    refresh(board)
    assert "Nothing to recommend yet" in board.snapshot.report  # infinite values teach nothing
    for _ in range(3):
        two.optimize(lambda trial: (trial.suggest_float("y", 0, 1), trial.params["y"]), n_trials=1)
    refresh(board)
    assert board.snapshot.problem == ""
    assert "The best compromises" in board.snapshot.report
    assert board.snapshot.view.counts == {"told": 4}  # type: ignore[union-attr]
    assert [source.name for source in sources([url], ["two"])] == ["two"]


@pytest.mark.parametrize(
    ("word", "names", "message"),
    [
        ("nothing.json", [], "there is no file nothing.json; give a study file"),
        ("nothing.toml", [], "cannot be read"),
        ("sqlite:///nothing.db", [], "there is no sqlite:///nothing.db"),
        ("nothing.json", ["s"], "there is no file"),
        ("nonsense://x", [], "cannot be opened"),
    ],
)
def test_targets_that_mean_nothing(word: str, names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sources([word], names)


def test_a_name_goes_with_a_storage(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    cheap().save(path)
    with pytest.raises(ValueError, match="--study goes with a storage"):
        sources([str(path)], ["s"])
    url = f"sqlite:///{tmp_path}/a.db"
    optuna.create_study(study_name="s", storage=url)
    with pytest.raises(ValueError, match=r"there is no study 't' in .*; it has 's'"):
        sources([url], ["t"])


def test_a_trial_that_ends_while_the_model_is_asked_is_for_the_next_page(
    study: optuna.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = StudyModel.answers

    def meanwhile(model: StudyModel, asked: optuna.Study, *given: Any) -> Answers:
        add(study, 5)
        return answers(model, asked, *given)

    monkeypatch.setattr(StudyModel, "answers", meanwhile)
    subject = stored(tmp_path).subject()
    assert len(subject.told) == 5
    assert subject.model is not None
    assert subject.model.answers is not None
    assert subject.model.answers.data.told == 5
    assert len(subject.rows) == 5


def test_a_board_keeps_no_model(
    study: optuna.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its matrices grow with the square of the trials; what is shown grows with the trials."""
    gather, alive = boards.gather, list[weakref.ref[Any]]()

    def noted(subject: Any) -> Any:
        answers = subject.model.answers
        factors = [outcome.posterior.inverse_factor for outcome in answers.model.outcomes]
        alive.extend(weakref.ref(kept) for kept in (answers, *factors))
        return gather(subject)

    monkeypatch.setattr(boards, "gather", noted)
    board = board_of(stored(tmp_path))
    for i in range(5, 8):
        add(study, i)
        refresh(board)
    gc.collect()
    assert board.asked == 3
    assert len(alive) == 6
    assert [kept() for kept in alive] == [None] * 6
    assert "Recommended" in board.snapshot.report
