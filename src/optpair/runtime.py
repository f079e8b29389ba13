"""How the library lives with JAX: float64 that does not leak, keys, compiled code on disk, forks.

Nothing here changes a global setting of JAX at import.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from optpair.programs import Program, device, usual_promotion

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Numbers = Array | np.ndarray  # what compiled code takes: arrays of the device or of the host

MOST_SEED_BITS = 4096

_entered = False  # the engine was used in this process
_forked = False  # JAX was running when this process was forked


def pytree(cls: type[T]) -> type[T]:
    """Register a frozen dataclass as a JAX pytree.

    Fields made with `static()` are compiled in, all others are arrays. Rebuilding inside a
    JAX transformation skips `__init__`, so shape checks hold for what code builds, not for
    JAX's own placeholders.
    """
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    arrays = tuple(f.name for f in fields if not f.metadata.get("static"))
    statics = tuple(f.name for f in fields if f.metadata.get("static"))

    def flatten(obj: T) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(obj, k) for k in arrays), tuple(getattr(obj, k) for k in statics)

    def unflatten(aux: tuple[Any, ...], children: Any) -> T:
        obj = object.__new__(cls)
        for name, value in zip(arrays + statics, (*children, *aux), strict=True):
            object.__setattr__(obj, name, value)
        return obj

    jax.tree_util.register_pytree_node(cls, flatten, unflatten)
    return cls


def static(**kwargs: Any) -> Any:
    """A dataclass field that is compiled in rather than traced."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


def double(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function in float64 on `device()`, whatever the caller's JAX settings are.

    Code here relies on JAX's usual promotion of types and ranks, which some make an error.

    The switches are thread-local, so every way into the engine passes through here.
    """

    @functools.wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        _enter()
        with jax.enable_x64(True), jax.default_device(device()), usual_promotion():
            return function(*args, **kwargs)

    return inner


def compiled(*static: str, plain: bool = False) -> Callable[[Callable[P, R]], Program[P, R]]:
    """Compile a function on its first call; `static` names arguments that are compiled in.

    A `plain` one compiles in half the time, and runs a little slower.
    """

    def wrap(function: Callable[P, R]) -> Program[P, R]:
        return Program(function, static, plain)

    return wrap


def to_numpy(tree: T) -> T:
    """The same structure with NumPy arrays, safe to hand out."""
    same: T = jax.tree.map(np.asarray, tree)
    return same


def single(tree: T) -> T:
    """The same structure in single precision: half the time, where values are only compared."""

    def cast(leaf: Any) -> Any:
        return leaf.astype(jnp.float32) if leaf.dtype == jnp.float64 else leaf

    same: T = jax.tree.map(cast, tree)
    return same


def make_key(seed: int) -> Array:
    """A random key from any non-negative int, the same in 32- and 64-bit modes."""
    words = jnp.asarray(np.frombuffer(_digest(seed)[:8], dtype=np.uint32))
    key: Array = jax.random.wrap_key_data(words, impl="threefry2x32")
    return key


def _digest(seed: int) -> bytes:
    return hashlib.sha256(str(seed).encode()).digest()


@dataclasses.dataclass(frozen=True)
class Stream:
    """A source of random numbers on the host, with a name: a seed and a path of counts.

    Random numbers enter compiled code as arrays: what is drawn here needs no compiling there.

    >>> bool(Stream.of(0).child(1).draw().normal() == Stream.of(0).child(1).draw().normal())
    True
    """

    words: tuple[int, ...]
    path: tuple[int, ...] = ()

    @classmethod
    def of(cls, seed: int | Array) -> Stream:
        """The stream of a seed (any non-negative int), or of a JAX key."""
        if isinstance(seed, int):
            return cls(tuple(np.frombuffer(_digest(seed)[:8], dtype=np.uint32).tolist()))
        return cls(tuple(np.asarray(jax.random.key_data(seed)).astype(np.uint32).tolist()))

    def child(self, *path: int) -> Stream:
        """The stream further down that path."""
        return Stream(self.words, self.path + path)

    def draw(self) -> np.random.Generator:
        """A generator at the beginning of this stream."""
        return np.random.Generator(np.random.Philox(self._sequence()))

    def key(self) -> np.ndarray:
        """Two words for a JAX key that compiled code makes: `jax.random.wrap_key_data`."""
        return self._sequence().generate_state(2)

    def _sequence(self) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.words, spawn_key=self.path)


def check_seed(seed: object) -> int:
    """A seed that can be hashed to a key, or an error that says what is accepted."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"seed must be a non-negative int or None, not {seed!r}")
    number = int(seed)
    if number < 0:
        raise ValueError(f"seed must be a non-negative int, not {number}")
    if number.bit_length() > MOST_SEED_BITS:
        raise ValueError(
            f"seed must be below 2**{MOST_SEED_BITS}, not an int of {number.bit_length()} bits"
        )
    return number


def limit_threads(count: int) -> None:
    """Let the engine use at most so many threads; before its first use in a process.

    By default it uses the cores that the process may run on.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"count must be an int of at least 1, not {count!r}")
    if _jax_is_running():
        raise RuntimeError("JAX has started its threads already: call limit_threads first")
    before = os.environ.get("NPROC")
    os.environ["NPROC"] = str(count)  # XLA's own name for it, read once
    try:
        jax.devices()
    finally:
        if before is None:
            del os.environ["NPROC"]
        else:
            os.environ["NPROC"] = before


def refuse_fork() -> None:
    """An error in a forked child of a process that has used JAX, where JAX would hang."""
    if _forked:
        raise RuntimeError(
            "optpair or JAX was used before this process was forked, and JAX cannot run in a "
            "forked child. Start workers with the 'spawn' method, for example "
            "multiprocessing.get_context('spawn')."
        )


def _enter() -> None:
    """After a fork: refuse clearly. First use in this process: be ready for one."""
    global _entered
    refuse_fork()
    if not _entered:
        _entered = True
        if hasattr(os, "register_at_fork"):
            jax.devices()  # starts JAX, whose own hook must be there first: they run last in first
            os.register_at_fork(before=_before_fork)


def _before_fork() -> None:
    """Silence JAX's warning at every fork of the host process: the guard says what matters."""
    warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called\. os\.fork\(\) is")


def _after_fork() -> None:
    global _forked
    _forked = _forked or _entered or _jax_is_running()


def _jax_is_running() -> bool:
    """Whether anyone has started JAX's threads in this process."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    started = getattr(bridge, "backends_are_initialized", None)  # private: may go
    return bool(started()) if started else False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
