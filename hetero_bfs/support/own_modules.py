"""Runs a module of this package in another process, with this process's packages."""

from __future__ import annotations

import os
import sys


def module_command(module: str) -> list[str]:
    """With -P Python does not look for modules in the current folder, which may have a malicious
    numpy.py.
    """
    return [sys.executable, "-P", "-m", module]


def module_environment(**variables: str) -> dict[str, str]:
    """Return this process's environment with these variables and its module search path.

    Empty entries of `sys.path` stand for the current folder and are left out.
    """
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
