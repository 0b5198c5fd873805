"""The folder of a study: written at once when all is done, and never over somebody else's files."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from hetero_bfs.errors import HeteroBFSError

MARKER = "study.json"
_PROGRAM = "hetero-bfs study"


def check_folder(folder: Path) -> None:
    """Raise `HeteroBFSError` unless a study could be written here, before the work.

    A folder that exists must be empty or hold an earlier study, which will be replaced.
    """
    if folder.is_dir():
        strangers = sorted(path.name for path in folder.iterdir())
        if strangers and not _is_study(folder):
            raise HeteroBFSError(
                f"{folder} holds other files ({', '.join(strangers[:3])}"
                f"{', ...' if len(strangers) > 3 else ''}) and no earlier study; name a new folder"
            )
        if not os.access(folder, os.W_OK):
            raise HeteroBFSError(f"{folder} cannot be written: permission denied")
    elif folder.exists() or folder.is_symlink():
        raise HeteroBFSError(f"{folder} is no folder; name a new one")
    if folder.exists():
        return
    above = next(path for path in folder.absolute().parents if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise HeteroBFSError(f"{folder} cannot be made: {above} is no folder one may write to")


def _is_study(folder: Path) -> bool:
    try:
        summary = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        return str(summary["program"]) == _PROGRAM
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_folder(folder: Path, files: Mapping[str, bytes], summary: Mapping[str, object]) -> None:
    """Write all files and the summary, `MARKER`, whole or not at all.

    A new folder appears when it is complete. In one that exists, files of an earlier study are
    replaced one after another, the marker last, and others stay.

    Raises
    ------
    HeteroBFSError
        The system cannot write.
    """
    marked = json.dumps({"program": _PROGRAM, **summary}, indent=1, allow_nan=False) + "\n"
    exists = folder.is_dir()
    beside = folder.absolute() if exists else folder.absolute().parent
    temporary = beside / f".{folder.absolute().name}.{secrets.token_hex(4)}.tmp"
    try:
        temporary.mkdir(parents=True)
        for name, content in {**files, MARKER: marked.encode()}.items():
            (temporary / name).write_bytes(content)
        if exists:
            for name in (*files, MARKER):
                os.replace(temporary / name, folder / name)
        else:
            os.replace(temporary, folder)
    except OSError as error:
        raise HeteroBFSError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
