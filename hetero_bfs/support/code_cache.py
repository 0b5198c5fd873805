"""Numba's compiled code, kept on disk between processes.

Numba's own cache trusts its files, and they are pickles. A damaged file ends the process, and a
file of another user runs that user's code. Here each compiled function is one entry of the private
cache (private_cache.py). Its stamp contains everything that the code depends on: the kernels'
sources, the versions, the processor. If the entry does not match, the function is compiled again.
File names do not depend on the sources, so after a change new code replaces old code.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import caching
from numba.core.registry import cpu_target

from hetero_bfs.support import private_cache
from hetero_bfs.support.private_cache import folder

_PACKAGE = Path(__file__).resolve().parent.parent
_VERSIONS = numba.__version__, llvmlite.__version__, sys.version, numba.config.BOUNDSCHECK
_COMPILES = re.compile(
    rb"^(?:from|import) numba\b"
    rb"|^from [\w.]+ import [^\n]*\b(?:kernel|compiled|inlined|parallel_kernel)\b",
    re.MULTILINE,
)
_IMPORTS = re.compile(
    rb"^from (hetero_bfs[\w.]*) import (?:\(([^)]*)\)|(.*))|^import (hetero_bfs[\w.]*)",
    re.MULTILINE,
)


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function with `njit`, which takes the options, and with this cache."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        dispatcher._cache = CodeCache(function)
        return dispatcher

    return decorate


class CodeCache(caching.NullCache):  # type: ignore[misc]
    """The stored code of one function, behind Numba's cache interface: a file for each signature.

    It uses internals of Numba. If a version lacks them, no code is kept: after any failure the
    function is compiled again.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._source = function.__code__.co_filename
        self._sources: tuple[str, ...] | None = None
        try:  # read now, since the file may be edited before the first call
            self._sources = sources_digest(), _file_digest(self._source)
        except OSError:  # the function was typed at a prompt, or imported from an archive
            self._sources = None

    @property
    def cache_path(self) -> str | None:
        return None if folder() is None else str(folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        try:
            from numba.core.compiler import CompileResult

            content = private_cache.read(*self._entry(sig, target_context.codegen()))
            kept_sig, parts = pickle.loads(content)
            return CompileResult._rebuild(target_context, *parts) if kept_sig == sig else None
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled result, if another process can use it."""
        try:
            from numba.core.serialize import dumps

            name, stamp = self._entry(sig, data.codegen)
            lifted = all(loop.can_cache for loop in data.lifted)
            if folder() is not None and lifted and not data.library.has_dynamic_globals:
                private_cache.write(name, stamp, dumps((sig, data._reduce())))
        except Exception:
            return

    def holds(self, sig: Any, codegen: Any) -> bool:
        try:
            private_cache.read(*self._entry(sig, codegen))
        except Exception:
            return False
        return True

    def _entry(self, sig: Any, codegen: Any) -> tuple[str, bytes]:
        """Return the name of a signature's file and its stamp."""
        from numba.core.serialize import dumps

        if self._sources is None:
            raise FileNotFoundError
        code = self._function.__code__
        cells = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        closure = hashlib.sha256(dumps(cells)).hexdigest() if cells else ""
        target = codegen.magic_tuple()
        whose = repr((self._source, self._function.__qualname__, sig, target, closure))
        stamp = repr((whose, code.co_firstlineno, code.co_code, self._sources, _VERSIONS))
        readable = re.sub(r"\W+", "_", self._function.__qualname__)[:80]
        return f"{readable}-{hashlib.sha256(whose.encode()).hexdigest()[:32]}.bin", stamp.encode()


def is_kept(dispatcher: Any, kinds: tuple[Any, ...]) -> bool:
    return bool(dispatcher._cache.holds(kinds, dispatcher.targetctx.codegen()))


@cache
def note_compiled(name: str) -> None:
    """Note for later processes that the code of this class was compiled and stored."""
    if not was_compiled(name):
        private_cache.write(f"{name}.compiled", _stamp_of_all(), b"")


def was_compiled(name: str) -> bool:
    try:
        private_cache.read(f"{name}.compiled", _stamp_of_all())
    except OSError:
        return False
    return True


@cache
def _stamp_of_all() -> bytes:
    target = cpu_target.target_context.codegen().magic_tuple()
    return repr((sources_digest(), _VERSIONS, target)).encode()


@cache
def sources_digest() -> str:
    """Return a digest of the kernels' sources: files that use Numba, and files they import."""
    digest = hashlib.sha256()
    for path, content in sorted(kernel_sources().items()):
        digest.update(f"{path} {len(content)} ".encode() + content)
    return digest.hexdigest()


def kernel_sources() -> dict[str, bytes]:
    """Return the files of this package that kernels may depend on, by path below it.

    Imports are followed, since Numba compiles in functions and constants of other modules.
    """
    files = {path.relative_to(_PACKAGE): path.read_bytes() for path in _PACKAGE.rglob("*.py")}
    found: set[Path] = set()
    left = [p for p, content in files.items() if "kernels" in p.parts or _COMPILES.search(content)]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += [other for other in _imported(files[path]) if other in files]
    return {path.as_posix(): files[path] for path in found}


def _imported(content: bytes) -> list[Path]:
    """List possible paths, below the package, of the modules that a file imports at its top."""
    paths = []
    for origin, in_brackets, on_line, module in _IMPORTS.findall(content):
        base = Path(*(origin or module).decode().split(".")[1:])
        names = re.findall(r"(\w+)(?: as \w+)?", (in_brackets or on_line).decode())
        for place in (base, *(base / name for name in names)):
            paths += [place.with_name(f"{place.name}.py")] if place.name else []
            paths.append(place / "__init__.py")
    return paths


@cache
def _file_digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
