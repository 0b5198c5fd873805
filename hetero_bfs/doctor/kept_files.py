"""Examines the folders that keep compiled code between runs."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path

from hetero_bfs.doctor.examination import Finding

CACHES = "caches"


def check_kept_files() -> Iterator[Finding]:
    yield from _compiled_code()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    pocl = os.environ.get("POCL_CACHE_DIR")
    yield _foreign("PoCL", Path(pocl) if pocl else cache / "pocl", "POCL_CACHE_DIR")
    yield _foreign("PyOpenCL", cache / "pyopencl", "XDG_CACHE_HOME")


def _compiled_code() -> Iterator[Finding]:
    from hetero_bfs.support import private_cache

    with warnings.catch_warnings(record=True) as caught:  # the reason comes as a warning
        warnings.simplefilter("always")
        folder = private_cache.folder()
    told = [str(warning.message) for warning in caught]
    if folder is not None:
        yield Finding(CACHES, "compiled code", "ok", f"{folder}, {_content(folder)}, private")
        return
    text = told[0] if told else "compiled code is not kept, so every run compiles"
    remedy = "export NUMBA_CACHE_DIR to a folder of yours"
    yield Finding(CACHES, "compiled code", "failed", text.partition("; set ")[0], remedy)


def _foreign(name: str, folder: Path, variable: str) -> Finding:
    """Examine a folder that another program keeps; the environment variable moves it."""
    try:
        if not folder.is_dir():
            return _to_be_made(name, folder, variable)
        mode = folder.stat().st_mode
    except OSError as error:
        return Finding(CACHES, name, "failed", f"{folder}: {error.strerror}", f"export {variable}")
    if not os.access(folder, os.W_OK | os.X_OK):
        remedy = f"chmod u+rwx {folder}, or export {variable} to a folder of yours"
        return Finding(CACHES, name, "failed", f"{folder} cannot be written", remedy)
    text = f"{folder}, {_content(folder)}"
    if stat.S_IMODE(mode) & 0o022:
        return Finding(CACHES, name, "failed", f"{text}: others can write", f"chmod go-w {folder}")
    return Finding(CACHES, name, "ok", text)


def _to_be_made(name: str, folder: Path, variable: str) -> Finding:
    parent = next((p for p in folder.parents if p.exists()), Path("/"))
    if os.access(parent, os.W_OK | os.X_OK):
        return Finding(CACHES, name, "ok", f"{folder} is not there yet")
    text = f"{folder} is not there and cannot be made"
    return Finding(CACHES, name, "failed", text, f"export {variable} to a folder of yours")


def _content(folder: Path) -> str:
    from hetero_bfs.support.memory import format_bytes

    sizes = []
    for place, _, files in os.walk(folder):
        for file in files:
            try:
                sizes.append(os.lstat(os.path.join(place, file)).st_size)
            except OSError:  # removed meanwhile
                continue
    return f"{format_bytes(sum(sizes))} in {len(sizes)} files"
