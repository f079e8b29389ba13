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
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

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
    """Run a function in float64, whatever the caller's JAX settings are.

    The switch is thread-local, so every way into the engine passes through here.
    """

    @functools.wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        _enter()
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return inner


def compiled(*static: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`jax.jit` that keeps a function's type; `static` names arguments that are compiled in."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        return jax.jit(function, static_argnames=static)

    return wrap


def to_numpy(tree: T) -> T:
    """The same structure with NumPy arrays, safe to hand out."""
    same: T = jax.tree.map(np.asarray, tree)
    return same


def wait(tree: T) -> T:
    """Block until every array of a structure is computed."""
    done: T = jax.block_until_ready(tree)  # type: ignore[no-untyped-call]
    return done


def make_key(seed: int) -> Array:
    """A random key from any non-negative int, the same in 32- and 64-bit modes."""
    digest = hashlib.sha256(str(seed).encode()).digest()
    words = jnp.asarray(np.frombuffer(digest[:8], dtype=np.uint32))
    key: Array = jax.random.wrap_key_data(words, impl="threefry2x32")
    return key


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


def refuse_fork() -> None:
    """An error in a forked child of a process that has used JAX, where JAX would hang."""
    if _forked:
        raise RuntimeError(
            "optpair or JAX was used before this process was forked, and JAX cannot run in a "
            "forked child. Start workers with the 'spawn' method, for example "
            "multiprocessing.get_context('spawn')."
        )


def _enter() -> None:
    """After a fork: refuse clearly. First use in this process: set the disk cache up."""
    global _entered
    refuse_fork()
    if not _entered:
        _entered = True
        _use_disk_cache()
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


def _use_disk_cache() -> None:
    """Keep compiled code in the user's cache folder, unless the user has configured JAX's own."""
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None:
        return
    try:
        folder = _cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: no home
        return
    if not os.access(folder, os.W_OK):
        return
    config.update("jax_compilation_cache_dir", str(folder))
    config.update("jax_persistent_cache_min_compile_time_secs", 0.05)
    config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _cache_folder() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "optpair" / f"jax-{jax.__version__}"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
