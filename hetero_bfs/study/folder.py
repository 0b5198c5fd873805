"""The folder of a study: written completely or not at all, and never over other files.

A study is written to a temporary folder next to its own, which is renamed when it is complete. An
earlier study is renamed first, restored if that fails, and removed afterwards.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.support.files import check_new_entry, temporary_beside, unbroken
from hetero_bfs.support.messages import announce

MARKER = "study.json"
_PROGRAM = "hetero-bfs study"


def check_folder(folder: Path) -> None:
    """Raise `HeteroBFSError` if a study cannot be written here; called before any measurement.

    An existing folder must be empty or hold only an earlier study, which is replaced as a whole.
    """
    if not folder.is_dir():
        if folder.exists() or folder.is_symlink():
            what = "a link to nothing" if folder.is_symlink() else "a file"
            raise HeteroBFSError(f"{folder} is {what}, no folder; name a new one")
        check_new_entry(folder)
        return
    _check_replaceable(folder)
    check_new_entry(folder.resolve())  # next to it
    check_new_entry(folder / MARKER)  # and in it, since its files will be removed


def _check_replaceable(folder: Path) -> None:
    try:
        found = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise HeteroBFSError(f"{folder} cannot be read: {error.strerror or error}") from error
    earlier = _files_of_study(folder)
    strangers = [name for name in found if name not in earlier]
    if strangers:
        named = ", ".join(strangers[:3]) + (", ..." if len(strangers) > 3 else "")
        raise HeteroBFSError(
            f"{folder} holds {'other files than' if earlier else 'files, but not those of'} "
            f"an earlier study ({named}); a study replaces its folder: move them, or name a new one"
        )
    resolved = folder.resolve()
    if os.path.ismount(resolved) or resolved == Path.cwd() or resolved in Path.cwd().parents:
        what = "a mount point" if os.path.ismount(resolved) else "or holds the current folder"
        raise HeteroBFSError(
            f"{folder} is {what}, which no study can replace; name a new folder, such as "
            f"{folder / 'study'}"
        )


def _files_of_study(folder: Path) -> Sequence[str]:
    try:
        summary = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        if summary["program"] != _PROGRAM:
            return []
        return [MARKER, *map(str, summary["files"])]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def write_folder(folder: Path, files: Mapping[str, bytes], summary: Mapping[str, object]) -> None:
    """Write all files and the summary, `MARKER`, or nothing; `summary["files"]` names the files."""
    marked = json.dumps({"program": _PROGRAM, **summary}, indent=1, allow_nan=False) + "\n"
    target = folder.resolve()  # follows links
    aside = target.with_name(f"{target.name}.earlier-{secrets.token_hex(4)}")
    try:
        with temporary_beside(target, folder=True) as (temporary, _):
            for name, content in {**files, MARKER: marked.encode()}.items():
                (temporary / name).write_bytes(content)
            with unbroken():
                _swap(temporary, target, aside)
    except OSError as error:
        raise HeteroBFSError(f"{folder}: cannot be written: {error.strerror or error}") from error
    if aside.exists():
        _remove_study(aside)


def _swap(temporary: Path, target: Path, aside: Path) -> None:
    """Rename the new folder to the target; move an existing one aside, or restore it on failure."""
    try:
        if target.exists():
            os.rename(target, aside)
        os.rename(temporary, target)
    except BaseException:
        if aside.exists() and not target.exists():
            os.rename(aside, target)
        raise


def _remove_study(folder: Path) -> None:
    """Remove a study's files, and the folder unless other files have been added to it."""
    earlier = _files_of_study(folder)
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name in earlier:
                path.unlink()
        folder.rmdir()
    if folder.exists():
        announce(f"what else was in the earlier study's folder is in {folder}")
