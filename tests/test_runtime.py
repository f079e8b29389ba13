"""How the library lives with JAX, and with what else is in the process."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optpair.programs import device
from optpair.runtime import check_seed, double, limit_threads, make_key

from shell_cases import cheap, filled, python

DESIGN = """
import jax, optpair, warnings
assert not jax.config.jax_enable_x64
assert jax.config.jax_compilation_cache_dir == {before!r}
from shell_cases import cheap
trial = cheap().ask()
assert not jax.config.jax_enable_x64
assert jax.numpy.zeros(1).dtype == "float32"
print(jax.config.jax_compilation_cache_dir, trial.params["x"])
"""

FORK = """
import multiprocessing, os, sys
from shell_cases import cheap, jes
import warnings

def child(optimizer, results):
    for call in (optimizer.ask, optimizer.recommend, lambda: optimizer.tell(0, 1.0)):
        try:
            call()
            results.put("no error")
        except RuntimeError as error:
            results.put(str(error))

{setup}
context = multiprocessing.get_context("fork")
results = context.Queue()
process = context.Process(target=child, args=(optimizer, results))
process.start()
for _ in range(3):
    print(results.get(timeout=60))
process.join(60)
assert process.exitcode == 0
{release}
optimizer.ask()  # the parent goes on
"""


def test_float64_does_not_leak() -> None:
    @double
    def inside() -> Any:
        return jnp.zeros(1).dtype

    @double
    def broken() -> None:
        raise KeyError

    assert inside() == np.float64
    assert jnp.zeros(1).dtype == np.float32
    with pytest.raises(KeyError):
        broken()
    assert jnp.zeros(1).dtype == np.float32


@pytest.mark.parametrize(
    ("name", "value"),
    [("jax_numpy_dtype_promotion", "strict"), ("jax_numpy_rank_promotion", "raise")],
)
def test_strict_settings_of_jax_are_respected_and_harm_nothing(name: str, value: str) -> None:
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        made = double(lambda: jnp.ones((2, 3)) * jnp.arange(3) * jnp.ones(3, dtype=bool))()
        assert made.tolist() == [[0, 1, 2]] * 2
        assert getattr(jax.config, name) == value
    finally:
        jax.config.update(name, before)


def test_float64_in_a_worker_thread() -> None:
    seen: list[Any] = []

    def work() -> None:
        seen.append(double(lambda: jnp.zeros(1).dtype)())
        seen.append(jnp.zeros(1).dtype)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [np.float64, np.float32]


def test_ask_in_a_worker_thread_gives_the_same_point() -> None:
    here, there = (filled(cheap(), [1.0, 0.5, 2.0, 0.7]) for _ in range(2))
    trials: list[Any] = []
    thread = threading.Thread(target=lambda: trials.append(there.ask()))
    thread.start()
    thread.join()
    assert trials == [here.ask()]
    recommendation = here.recommend()
    assert type(recommendation.mean) is float
    assert jnp.zeros(1).dtype == np.float32


@pytest.mark.parametrize("seed", [0, 7, 2**32, 2**64 - 1, 2**200, np.int64(7), np.uint64(7)])
def test_keys_are_the_same_in_both_precisions(seed: int) -> None:
    number = check_seed(seed)
    assert type(number) is int
    key = jax.random.key_data(make_key(number))
    wide = double(lambda: np.asarray(jax.random.key_data(make_key(number))))()
    np.testing.assert_array_equal(key, wide)


def test_seeds_give_different_keys() -> None:
    seeds = [0, 1, 2**32, 2**32 + 1, 2**64, 2**200]
    assert len({np.asarray(jax.random.key_data(make_key(s))).tobytes() for s in seeds}) == 6


@pytest.mark.parametrize("seed", ["1", 1.0, True, None, [1], np.float64(1)])
def test_seeds_are_ints(seed: Any) -> None:
    with pytest.raises(TypeError, match="seed must be a non-negative int"):
        check_seed(seed)


@pytest.mark.parametrize("seed", [-1, np.int64(-1), 2**5000, 2**50000], ids=range(4))
def test_seeds_have_a_range(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be "):
        check_seed(seed)


DEVICES = """
import jax
from shell_cases import cheap, filled
from optpair.programs import device
from optpair.runtime import double
first, second = jax.devices()
where = double(lambda: (device(), next(iter(jax.numpy.zeros(1).devices()))))
assert where() == (first, first), where()
with jax.default_device(second):
    assert where() == (second, second), where()
    print(filled(cheap(), [1.0, 2.0, 0.5, 0.7]).recommend().mean)
print(filled(cheap(), [1.0, 2.0, 0.5, 0.7]).recommend().mean)
"""


def test_all_runs_on_the_device_that_jax_was_told(tmp_path: Path) -> None:
    """With a cache that is empty, and then with what was compiled."""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    for _ in range(2):
        done = python(DEVICES, env={**flags, "XDG_CACHE_HOME": str(tmp_path)})
        assert (done.returncode, done.stderr) == (0, "")
        assert len(set(done.stdout.split())) == 1


def test_the_cpu_unless_jax_was_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where JAX has a GPU, which would come first."""
    monkeypatch.setattr(jax, "devices", lambda *_: ["the GPU"])
    monkeypatch.setattr(jax, "local_devices", lambda backend: [f"the {backend}"])
    told = jax.config.jax_platforms  # type: ignore[attr-defined]
    assert device() == ("the GPU" if told else "the cpu")


def test_a_quiet_process_with_a_cache_of_its_own(tmp_path: Path) -> None:
    """Cold, then warm: the second process finds what the first has compiled, and adds nothing."""
    outputs, kept = [], []
    for _ in range(2):
        done = python(DESIGN.format(before=None), env={"XDG_CACHE_HOME": str(tmp_path)})
        assert (done.returncode, done.stderr) == (0, "")
        outputs.append(done.stdout)
        kept.append({file.name for file in tmp_path.rglob("programs/*")})
    assert outputs[0] == outputs[1]
    assert outputs[0].startswith("None")  # JAX's own cache is left alone
    assert kept[0] == kept[1]
    assert any(name.startswith("optpair.stages.fill-") for name in kept[0])


def test_the_users_own_cache_is_respected(tmp_path: Path) -> None:
    mine = str(tmp_path / "mine")
    done = python(DESIGN.format(before=mine), env={"JAX_COMPILATION_CACHE_DIR": mine})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(mine)


def test_a_home_that_cannot_be_written() -> None:
    done = python(DESIGN.format(before=None), env={"XDG_CACHE_HOME": "/dev/null/cache"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("None")


@pytest.mark.parametrize(
    "setup",
    [
        "optimizer = jes(); optimizer.ask()",  # optpair has used JAX
        "import jax; warnings.simplefilter('ignore'); jax.numpy.zeros(1); optimizer = jes()",
        # another thread is inside the optimizer while the process forks
        "optimizer = jes(); optimizer.ask(); import threading\n"
        "taken = threading.Event(); done = threading.Event()\n"
        "def hold():\n"
        "    with optimizer._lock:\n"
        "        taken.set(); done.wait(60)\n"
        "threading.Thread(target=hold, daemon=True).start(); taken.wait()",
    ],
    ids=["used", "jax alone", "locked"],
)
def test_a_forked_child_is_told_what_to_do(setup: str) -> None:
    release = "done.set()" if "done" in setup else ""
    done = python(FORK.format(setup=setup, release=release))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all("Start workers with the 'spawn' method" in line for line in lines)


THREADS = """
import os, sys, time, optpair
from shell_cases import filled, jes
if sys.argv[1] != "all":
    optpair.limit_threads(int(sys.argv[1]))
assert "NPROC" not in os.environ
optimizer = filled(jes(), [0.3, 0.1, 0.7, 0.2])
optimizer.ask()
begin = time.process_time()
time.sleep(1.0)
idle = time.process_time() - begin
try:
    optpair.limit_threads(2)
except RuntimeError as error:
    assert "already" in str(error)
else:
    raise AssertionError("too late, and not said")
print(len(os.listdir("/proc/self/task")), idle)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads cannot be counted here")
def test_threads_are_limited_and_idle_between_asks() -> None:
    shown = [python(THREADS, count) for count in ("1", "all")]
    assert [done.stderr for done in shown] == ["", ""]
    (one, idle), (every, _) = ([float(word) for word in done.stdout.split()] for done in shown)
    assert one < every or len(os.sched_getaffinity(0)) == 1
    assert idle < 0.1


@pytest.mark.parametrize("count", [0, -1, 1.0, True, None, "2"])
def test_a_number_of_threads_is_a_number(count: object) -> None:
    with pytest.raises(ValueError, match="count must be an int of at least 1"):
        limit_threads(count)  # type: ignore[arg-type]
