"""The kernels in two forms from one source: compiled by numba, or plain Python over lists.

A kernel is a plain function. Here it and every function of ours that it calls are copied, and the
copies call each other; numba compiles the copies, plain Python puts its own `min` where a formula that
works on whole columns says numpy's `minimum`.
"""

import dis
import hashlib
import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from slurm_score import __version__

PACKAGE = __name__.partition(".")[0]

Kernel = Callable[..., Any]


def has_numba() -> bool:
    """Return whether numba is installed."""
    return find_spec("numba") is not None


def plain(kernel: Kernel, replaced: Mapping[Kernel, Kernel] | None = None) -> Kernel:
    """Return a kernel as plain Python; `replaced` puts other functions in the place of some it calls."""
    made: Kernel = _copied(kernel, {np.minimum: min, **(replaced or {})}, lambda copy: copy)
    return made


@cache
def compiled(kernel: Kernel) -> Kernel:
    """Return a kernel compiled by numba, from the cache where one can be written.

    Without numba's reference counts (`_nrt`) it is 30 times faster: each call of one kernel by another
    would count 31 arrays up and down. So kernels make no arrays.
    """
    numba: Any = importlib.import_module("numba")
    folder = _cache_folder(kernel)
    with _cache_dir(folder):
        finish = numba.njit(cache=folder is not None, error_model="numpy", _nrt=False)
        made: Kernel = _copied(kernel, {}, finish)
        return made


def _copied(kernel: Kernel, made: dict[Any, Any], finish: Callable[[FunctionType], Any]) -> Any:
    """Return the finished copy of a function; `made` holds what stands for what."""
    if kernel in made:
        return made[kernel]
    names = {**kernel.__globals__}
    for name, value in _called(kernel):
        if value in made or _is_ours(value):
            names[name] = _copied(value, made, finish)
    code = kernel.__code__
    copy = FunctionType(code, names, kernel.__name__, kernel.__defaults__)
    copy.__qualname__, copy.__module__ = kernel.__qualname__, kernel.__module__
    made[kernel] = finish(copy)
    return made[kernel]


def _called(kernel: Kernel) -> Iterator[tuple[str, Any]]:
    for name in {i.argval for i in dis.get_instructions(kernel) if i.opname == "LOAD_GLOBAL"}:
        value = kernel.__globals__.get(name)
        if callable(value):
            yield name, value


def _is_ours(value: Any) -> bool:
    return isinstance(value, FunctionType) and value.__module__.partition(".")[0] == PACKAGE


def _sources(kernel: Kernel, seen: set[Kernel]) -> set[Kernel]:
    """The kernel and all of ours that it calls."""
    if kernel not in seen:
        seen.add(kernel)
        for _, value in _called(kernel):
            if _is_ours(value):
                _sources(value, seen)
    return seen


def _cache_folder(kernel: Kernel) -> Path | None:
    """A folder of the user's for this very source: numba itself doesn't look at the files of those called."""
    files = sorted({function.__code__.co_filename for function in _sources(kernel, set())})
    digest = hashlib.sha256(__version__.encode())
    for file in files:
        digest.update(Path(file).read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    folder = home / "slurm-score" / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


@contextmanager
def _cache_dir(folder: Path | None) -> Iterator[None]:
    """Let numba keep what it compiles in a folder, which it asks for when a function is decorated."""
    config: Any = importlib.import_module("numba").config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder or "")
    try:
        yield
    finally:
        config.CACHE_DIR = before
