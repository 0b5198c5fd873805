"""Classes of methods made from text, for the tests of the translator."""

from __future__ import annotations

import linecache
from itertools import count

from random_methods import FIELDS, WEAK

from hetero_bfs.programs.codegen import method_source

_FILES = count()

HEAD = """
import math
import numpy as np

"""


def class_of(text: str, name: str):
    """Return a class that a text defines; the text can be read as a source file."""
    file = f"<methods {next(_FILES)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict = {"__name__": "methods"}
    exec(compile(text, file, "exec"), space)
    return space[name]


def method_of(program, name: str, results: list[str], optional=None) -> method_source.Method:
    names = {n: method_source.Source("", n, kind, True) for n, kind in WEAK.items()}
    return method_source.Method(program, name, {"state": FIELDS}, names, results, optional)
