"""The version and the commit of this code, which setuptools-scm writes into `_version.py`."""

from __future__ import annotations

from importlib import import_module

VERSION = "0+unknown"
"""As here where nothing was built or installed, such as in a copied tree."""

COMMIT: str | None = None
"""12 digits, None if unknown."""

try:
    _written = import_module("hetero_bfs._version")
except ImportError:
    pass
else:
    VERSION = _written.version
    if _written.commit is not None:
        COMMIT = _written.commit.removeprefix("g")[:12]
