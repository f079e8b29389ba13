"""What outlives the process: each compiled program is kept on disk, ready to run.

JAX's own cache saves compiling, but a new process still traces and lowers every function, which
takes longer than loading it. So a compiled program is kept whole, under a name that says everything
it depends on: the library's source, JAX, the processor, and the shapes of its arguments.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import io
import os
import pickle
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

# Faster to compile, and as fast to run: the time is in matrix products and vector loops.
OPTIONS = {"xla_backend_optimization_level": 1}
# Half the time to compile; loops of elementary functions are slower then.
PLAIN = OPTIONS | {"xla_cpu_use_fusion_emitters": False}
MOST_FILES = 400  # programs on disk; those that were not used for longest go first


# One program at a time: two at once can each hold the threads that the other is waiting for.
_running = threading.Lock()


@functools.cache
def _blas() -> ThreadpoolController:
    """SciPy's BLAS, which is JAX's LAPACK: loaded before the first program runs."""
    return ThreadpoolController().select(user_api="blas")


def device() -> Any:
    """Where everything runs: the CPU, unless JAX was told otherwise. A GPU is the objective's."""
    told, platforms = jax.config.jax_default_device, jax.config.jax_platforms  # type: ignore[attr-defined]
    if told is not None:
        return told if isinstance(told, jax.Device) else jax.devices(told)[0]
    return jax.devices()[0] if platforms else jax.local_devices(backend="cpu")[0]


@contextlib.contextmanager
def usual_promotion() -> Iterator[None]:
    """Types and ranks are promoted as by default, also for those who made that an error."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


_limiting = threading.Lock()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """No threads of BLAS for a while.

    They gain nothing on small matrices, and spin: where another process has the second core, a
    factorisation of a millisecond would wait for the scheduler, a hundred times as long. Whoever
    set the limit lifts it, and nobody else: two that overlap would leave it behind for good.
    """
    if not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with _blas().limit(limits=1):
            yield
    finally:
        _limiting.release()


class _Here(threading.local):
    ahead = False  # whether this thread only rehearses
    most = 1  # threads that compile for it
    beside: tuple[threading.Thread, ...] = ()  # what compiles for it meanwhile


_here = _Here()


def rehearse(work: Callable[[], None], beside: int = 1) -> None:
    """Go through something for the programs that it calls: in there, each only returns zeros.

    They are traced here and compiled meanwhile, by `beside` threads, or here where those are busy.
    """
    _here.ahead, _here.most = True, beside
    try:
        with contextlib.suppress(Exception):  # the same will be met, and told, where it is needed
            work()
    finally:
        _here.ahead = False


def compile_ahead(work: Callable[[], None]) -> threading.Thread | None:
    """Rehearse something in the background, compiling two programs at a time.

    It stops early when the main thread ends: nobody waits for more than that. None where the system
    has no thread left: then it is compiled when it is needed.
    """
    return _started(functools.partial(rehearse, work), "optpair-compiles-ahead")


def _started(job: Callable[[], None], name: str) -> threading.Thread | None:
    thread = threading.Thread(target=job, name=name)
    try:
        thread.start()
    except RuntimeError:  # a limit on processes, in a container
        return None
    return thread


def _beside(job: Callable[[], None]) -> None:
    """Do something in another thread, or here where those are busy."""

    def quietly() -> None:
        with contextlib.suppress(Exception):  # whoever waits for it is told
            job()

    busy = [thread for thread in _here.beside if thread.is_alive()]
    more = _started(quietly, "optpair-compiles-beside") if len(busy) < _here.most else None
    if more is None:
        quietly()
    _here.beside = tuple(busy) if more is None else (*busy, more)


def _unwanted() -> bool:
    return _here.ahead and not threading.main_thread().is_alive()


class _Form(NamedTuple, Generic[R]):
    """A program compiled for some shapes."""

    run: Any
    result: Any
    """What it returns, with a shape for every array."""


class _Outline(NamedTuple):
    """A program that is traced: the shapes it returns, and what is left to do."""

    result: Any
    finish: Callable[[], None]


class Program(Generic[P, R]):
    """A function whose compiled forms, one for each shape of its arguments, are kept on disk."""

    def __init__(
        self, function: Callable[P, R], static: tuple[str, ...], plain: bool = False
    ) -> None:
        self._options = PLAIN if plain else OPTIONS
        self._jit = jax.jit(function, static_argnames=static)
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._parameters = tuple(inspect.signature(function).parameters)
        self._static = static
        self._forms: dict[Any, Future[_Form[R]]] = {}
        self._lock = threading.Lock()
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it, in its compiled form; inside another program it becomes a part of that."""
        leaves, tree, static = self._bind(args, kwargs)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            inlined: R = self._jit(*args, **kwargs)
            return inlined
        leaves = [leaf if hasattr(leaf, "dtype") else np.asarray(leaf) for leaf in leaves]
        if _here.ahead:
            return self._rehearsed(leaves, tree, static)
        form = self._form(leaves, tree, static)
        with _running, one_blas_thread():
            outcome: R = form.run(**jax.tree.unflatten(tree, leaves))
            jax.block_until_ready(outcome)  # type: ignore[no-untyped-call]
        return outcome

    def _bind(self, args: Any, kwargs: Any) -> tuple[list[Any], Any, dict[str, Any]]:
        given = dict(zip(self._parameters, args, strict=False)) | kwargs
        static = {k: given.pop(k) for k in self._static if k in given}
        leaves, tree = jax.tree.flatten(given)
        return leaves, tree, static

    def _form(self, leaves: list[Any], tree: Any, static: dict[str, Any]) -> _Form[R]:
        """The form for these shapes; a second thread waits for the first to make it."""
        key = self._key(leaves, tree, static)
        form, mine = self._claim(key)
        if mine:
            made = self._outline(key, form, jax.tree.unflatten(tree, leaves), static)
            made.finish()
        return form.result()

    def _rehearsed(self, leaves: list[Any], tree: Any, static: dict[str, Any]) -> R:
        """Zeros of the shapes that it returns; it is compiled meanwhile."""
        key = self._key(leaves, tree, static)
        form, mine = self._claim(key)
        if mine:
            made = self._outline(key, form, jax.tree.unflatten(tree, leaves), static)
            _beside(made.finish)
            result = made.result
        else:
            result = form.result().result
        zeros: R = jax.tree.map(lambda shape: np.zeros(shape.shape, shape.dtype), result)
        return zeros

    def _key(self, leaves: list[Any], tree: Any, static: dict[str, Any]) -> Any:
        shapes = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
        return tree, shapes, tuple(static.items()), jnp.result_type(float)

    def _claim(self, key: Any) -> tuple[Future[_Form[R]], bool]:
        """The form that is made or being made, and whether it is ours to make."""
        found = self._forms.get(key)
        if found is not None:
            return found, False
        with self._lock:
            mine = key not in self._forms
            return self._forms.setdefault(key, Future()), mine

    def _outline(
        self, key: Any, form: Future[_Form[R]], arrays: dict[str, Any], static: dict[str, Any]
    ) -> _Outline:
        """What it returns, by its file or by tracing it, and the rest of the work."""

        wide = bool(jnp.result_type(float) == jnp.float64)

        def finish() -> None:
            with self._giving_up(key, form), jax.enable_x64(wide), usual_promotion():
                made = None if kept is None else _loaded(*kept, jax.tree.structure(((), arrays)))
                new = made is None
                made = made or _Form(_compile(trace()[1], self._options), result)
                form.set_result(made)
            if new and path is not None:
                _keep(path, made)

        @functools.cache
        def trace() -> tuple[Any, Any]:
            if _unwanted():
                raise InterruptedError("the process is about to end")
            traced = self._jit.trace(**arrays, **static)
            return traced.out_info, traced.lower()

        with self._giving_up(key, form):
            path = self._path(key)
            kept = None if path is None else _read(path)
            struct: Any = jax.ShapeDtypeStruct
            outputs = trace()[0] if kept is None else kept[1]
            result = jax.tree.map(lambda out: struct(out.shape, out.dtype), outputs)
        return _Outline(result, finish)

    @contextlib.contextmanager
    def _giving_up(self, key: Any, form: Future[_Form[R]]) -> Iterator[None]:
        """After an error: who waits is told, and who comes later tries again."""
        try:
            yield
        except BaseException as error:
            self._forms.pop(key, None)
            form.set_exception(error)
            raise

    def _path(self, key: Any) -> Path | None:
        folder = _cache_folder()
        if folder is None:
            return None
        digest = hashlib.sha256(repr((self._name, key, _surroundings())).encode()).hexdigest()
        return folder / "programs" / f"{self._name}-{digest[:32]}"


def _compile(lowered: Any, options: dict[str, Any]) -> Any:
    """Compiled with these options, where this XLA knows them."""
    if device().platform == "cpu":
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            return lowered.compile(compiler_options=options)
    return lowered.compile()


def _read(path: Path) -> tuple[bytes, Any] | None:
    """A program as it was kept and the shapes it returns, or None where it cannot be used."""
    try:
        payload, result = pickle.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except Exception:  # written by something else, or cut short: it is compiled again
        return None
    with contextlib.suppress(OSError):  # a cache of someone else's is as good
        path.touch()  # those that were not used for longest are the first to go
    return payload, result


def _loaded(payload: bytes, result: Any, structure: Any) -> _Form[Any] | None:
    """A kept program, ready to run, or None where it cannot be."""
    try:
        _start_lapack()
        outputs, here = jax.tree.structure(result), device()
        run = deserialize_and_load(payload, structure, outputs, here.client, [here])
        return _Form(run, result)
    except Exception:  # by another XLA, in spite of all: it is compiled again
        return None


@functools.cache
def _start_lapack() -> None:
    """JAX binds LAPACK when it first lowers a factorisation: without, a loaded one would crash."""
    jax.jit(jnp.linalg.cholesky).lower(np.ones((1, 1)))


def _keep(path: Path, form: _Form[Any]) -> None:
    """Write a program; a disk that refuses costs only time later."""
    with contextlib.suppress(Exception):
        payload, _, _ = serialize(form.run)
        _write(path, pickle.dumps((payload, form.result)))


def _write(path: Path, content: bytes) -> None:
    """In one atomic step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_bytes(content)
    temporary.replace(path)
    _prune(path.parent)


def kept(name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
    """An array that is always the same under its name: from the disk, or made, and kept there."""
    folder = _cache_folder()
    path = None if folder is None else folder / "arrays" / f"{name}.npy"
    if path is not None:
        with contextlib.suppress(OSError, ValueError, EOFError):
            return np.asarray(np.load(path))
    made = make()
    if path is not None:
        content = io.BytesIO()
        np.save(content, made)
        with contextlib.suppress(OSError):
            _write(path, content.getvalue())
    return made


def _prune(folder: Path) -> None:
    files = list(folder.iterdir())
    if len(files) > MOST_FILES:
        by_age = sorted(files, key=lambda file: file.stat().st_mtime)
        for file in by_age[: len(files) - MOST_FILES * 3 // 4]:
            file.unlink(missing_ok=True)


@functools.cache
def _surroundings() -> tuple[str, ...]:
    """What compiled code depends on beside its arguments."""
    source = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        source.update(file.read_bytes())
    here = device()
    return (
        source.hexdigest(),
        jax.__version__,
        version("jaxlib"),
        platform.python_version(),
        platform.machine(),
        _processor(),
        f"{here.platform} {here.device_kind} {len(jax.devices())} {os.cpu_count()}",
        os.environ.get("XLA_FLAGS", ""),
    )


def _processor() -> str:
    """The instructions it knows, where the system says so."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _cache_folder() -> Path | None:
    """Where programs are kept, unless the user has a cache of JAX's own: that one is used then.

    (What JAX has found in its cache cannot be written again.)
    """
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None:
        return None
    try:
        folder = _user_folder()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: no home
        return None
    return folder if os.access(folder, os.W_OK) else None


def _user_folder() -> Path:
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "optpair" / f"jax-{jax.__version__}"
