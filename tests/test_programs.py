"""Compiled programs that are kept, found again, shared by threads and made ahead of need."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache
from optpair.programs import Program
from threadpoolctl import threadpool_info, threadpool_limits

from optpair import programs, stages
from shell_cases import jes, point, python

STUDY = """
from shell_cases import filled, jes
optimizer = filled(jes(), [0.3, 0.1, 0.7, 0.2])
print(optimizer.ask().params, optimizer.recommend().mean)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and none of JAX's own, as most users have it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    reset_cache()
    yield tmp_path
    jax.config.update("jax_compilation_cache_dir", before)
    reset_cache()


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("programs/*"))


def doubled(x: jax.Array, *, times: int) -> tuple[jax.Array, dict[str, jax.Array]]:
    return 2.0 * x, {"sum": jnp.sum(x) * times}


def test_another_process_loads_what_was_compiled(folder: Path) -> None:
    """Factorisations too, and the answer is the same to the last digit."""
    first = python(STUDY, env={"XDG_CACHE_HOME": str(folder)})
    kept = {file.name: file.stat().st_ino for file in files(folder)}
    light = "import sys; assert 'scipy.stats' not in sys.modules"  # half a second to import
    second = python(STUDY + light, env={"XDG_CACHE_HOME": str(folder)})
    assert (first.returncode, first.stderr) == (second.returncode, second.stderr) == (0, "")
    assert first.stdout == second.stdout
    assert kept == {file.name: file.stat().st_ino for file in files(folder)}
    names = {name.split("-")[0] for name in kept}
    assert {"optpair.stages.sample", "optpair.stages.choose"} <= names


def test_a_program_is_loaded_not_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(3.0)
    compiled = Program(doubled, ("times",))(x, times=3)
    assert len(files(folder)) == 1
    monkeypatch.setattr(programs, "_compile", lambda _: pytest.fail("compiled again"))
    loaded = Program(doubled, ("times",))(x, times=3)
    for value in (compiled, loaded):
        np.testing.assert_array_equal(value[0], 2 * x)
        assert float(value[1]["sum"]) == 9


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_file_is_written_anew(folder: Path, damage: bytes | None) -> None:
    x = np.arange(3.0)
    Program(doubled, ("times",))(x, times=3)
    (file,) = files(folder)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    value = Program(doubled, ("times",))(x, times=3)
    assert float(value[1]["sum"]) == 9
    assert len(file.read_bytes()) > len(whole) // 2


def test_shapes_types_and_static_arguments_tell_programs_apart(folder: Path) -> None:
    program = Program(doubled, ("times",))
    with jax.enable_x64(True):
        assert program(np.arange(3.0), times=1)[0].dtype == np.float64
        assert float(program(np.arange(3.0), times=2)[1]["sum"]) == 6
        assert program(np.arange(4.0), times=2)[0].shape == (4,)
    assert program(np.arange(3.0), times=1)[0].dtype == np.float32
    assert len(files(folder)) == 4


def test_inside_another_program_it_is_a_part_of_it(folder: Path) -> None:
    program = Program(doubled, ("times",))
    slope = jax.grad(lambda x: jnp.sum(program(x, times=1)[0] ** 2))(jnp.ones(2))
    np.testing.assert_allclose(slope, 8.0)
    assert files(folder) == []


def test_threads_compile_once(folder: Path) -> None:
    traced = []

    def slow(x: jax.Array) -> jax.Array:
        traced.append(1)
        return jnp.sin(x)

    program = Program(slow, ())
    threads = [threading.Thread(target=program, args=(np.ones(5),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(traced) == 1


def test_an_error_while_tracing_is_told_to_all_and_not_kept(folder: Path) -> None:
    def wrong(x: jax.Array) -> jax.Array:
        raise ArithmeticError("no")

    program = Program(wrong, ())
    for _ in range(2):
        with pytest.raises(ArithmeticError, match="no"):
            program(np.ones(2))


def test_the_oldest_programs_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Oldest by when they were last used, not by when they were made."""
    monkeypatch.setattr(programs, "MOST_FILES", 4)
    program, order = Program(doubled, ("times",)), []
    for n in range(1, 5):
        program(np.ones(n), times=1)
        (new,) = set(files(folder)) - set(order)
        order.append(new)
        os.utime(new, (n, n))
    Program(doubled, ("times",))(np.ones(1), times=1)  # as another process would load it
    program(np.ones(5), times=1)
    left = set(files(folder))
    assert order[0] in left
    assert order[1] not in left


def test_a_cache_that_may_only_be_read_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Program(doubled, ("times",))(np.ones(2), times=1)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr(Path, "touch", refuse)
    monkeypatch.setattr(programs, "_compile", refuse)
    twice, _ = Program(doubled, ("times",))(np.ones(2), times=1)
    np.testing.assert_array_equal(twice, [2.0, 2.0])


def test_ahead_of_need_programs_are_compiled_and_not_run(folder: Path) -> None:
    """Each returns zeros at once, of the right shapes, and an error in one is met again later."""
    seen = []

    def sine(x: jax.Array) -> dict[str, jax.Array]:
        return {"sine": jnp.sin(x) + 1}

    def wrong(x: jax.Array) -> jax.Array:
        raise ArithmeticError("no")

    first, second, third = Program(sine, ()), Program(doubled, ("times",)), Program(wrong, ())

    def work() -> None:
        value = first(np.ones(5))["sine"]
        seen.extend([value, second(value, times=2)[0], second(value, times=2)[0]])
        third(value)

    thread = programs.compile_ahead(work)
    assert thread is not None
    thread.join()
    assert [(value.shape, value.any()) for value in seen] == [((5,), False)] * 3
    np.testing.assert_allclose(first(np.ones(5))["sine"], np.sin(1) + 1, rtol=1e-6)
    assert len(first._forms) == len(second._forms) == 1
    with pytest.raises(ArithmeticError, match="no"):
        third(np.ones(5))


def test_without_a_thread_to_spare_programs_are_compiled_when_needed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that may have no more processes: nothing hangs, and nothing is lost."""
    first = Program(doubled, ("times",))

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert programs.compile_ahead(lambda: None) is None
        programs.rehearse(lambda: first(np.ones(5), times=2) and None)
    assert len(first._forms) == 1
    np.testing.assert_allclose(first(np.ones(5), times=2)[0], doubled(np.ones(5), times=2)[0])


@pytest.mark.compiles_ahead
def test_the_next_size_is_compiled_while_a_trial_runs() -> None:
    """The first ask, of the initial design, gets what the first use of the model needs."""
    optimizer = jes(seed=3, ahead=True)
    optimizer.ask()
    worker = optimizer._ahead.worker
    assert worker is not None
    worker.join()
    made = len(stages.choose._forms)
    assert made > 0
    for i in range(4):
        optimizer.tell(point(i), float(i))
    optimizer.ask()
    assert optimizer.info.kind == "acquire"
    assert len(stages.choose._forms) == made


@pytest.mark.parametrize(("pending", "failed"), [(True, False), (False, True), (True, True)])
def test_what_pending_and_failed_trials_need_is_rehearsed(pending: bool, failed: bool) -> None:
    optimizer = jes(seed=3, exploit=0.0)
    for i in range(4):
        optimizer.tell(point(i), float(i))
    for i in range(failed):
        optimizer.tell(point(4 + i), failed=True)
    engine = optimizer._engine
    engine.rehearse(engine.size(optimizer._history.observations()), pending, failed)
    if pending:
        optimizer._history.add(point(7))
    parts = (stages.sample, stages.fantasise, stages.choose, stages.best_mean)
    made = [set(part._forms) for part in parts]
    optimizer.ask()
    assert optimizer.info.kind == "acquire"
    optimizer.recommend()
    assert [set(part._forms) for part in parts] == made


def test_two_threads_that_run_programs_do_not_block_each_other() -> None:
    """Batched factorisations from four threads: without turns, XLA's own threads can lock up."""

    def factors(K: jax.Array) -> jax.Array:
        return jnp.linalg.cholesky(K) @ K

    program, K = Program(factors, ()), np.tile(np.eye(48, dtype=np.float32), (12, 1, 1))

    def work() -> None:
        for _ in range(200):
            np.asarray(program(K))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)


def blas_threads() -> list[int]:
    """Of each BLAS in this process."""
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


def test_no_threads_of_blas_while_a_program_runs() -> None:
    """And those that the host process chose, again after."""

    def seen(x: np.ndarray) -> np.ndarray:
        during.append(blas_threads())
        return x

    during: list[list[int]] = []
    spy = Program(lambda x: jax.pure_callback(seen, x, x), ())
    with threadpool_limits(2, user_api="blas"):
        chosen = blas_threads()
        spy(np.ones(3))
        assert blas_threads() == chosen
    assert chosen
    assert during == [[1] * len(chosen)]


def test_threads_of_blas_come_back_when_two_overlap() -> None:
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with programs.one_blas_thread():
            entered.set()
            leave.wait(10)

    chosen = blas_threads()
    other = threading.Thread(target=stay)
    with programs.one_blas_thread(), programs.one_blas_thread():
        assert set(blas_threads()) == {1}
        other.start()
        assert entered.wait(10)
    assert blas_threads() == chosen
    leave.set()
    other.join()
    assert blas_threads() == chosen
    assert max(chosen) > 1 or os.cpu_count() == 1


def test_options_that_this_xla_does_not_know_are_done_without(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "OPTIONS", {"xla_no_such_option": 1})
    twice, _ = Program(doubled, ("times",))(np.ones(2), times=3)
    np.testing.assert_array_equal(twice, [2.0, 2.0])


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", b"something else"])
def test_arrays_are_kept_too(folder: Path, damage: bytes) -> None:
    made: list[int] = []

    def make() -> np.ndarray:
        made.append(1)
        return np.arange(6.0).reshape(2, 3)

    for _ in range(2):
        np.testing.assert_array_equal(programs.kept("some", make), [[0, 1, 2], [3, 4, 5]])
    assert len(made) == 1
    (file,) = folder.rglob("arrays/some.npy")
    file.write_bytes(damage)
    np.testing.assert_array_equal(programs.kept("some", make), make())
    np.testing.assert_array_equal(np.load(file), make())
