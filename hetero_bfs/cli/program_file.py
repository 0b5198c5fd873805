"""Vertex programs in files of Python: arguments on the command line, and loading the class."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from hetero_bfs.cli.argument_groups import vertex
from hetero_bfs.errors import GraphFileError, HeteroBFSError, ProgramError

if TYPE_CHECKING:
    from hetero_bfs.programs.program import Program

_FLAGS = {"true": True, "false": False}


class Argument(NamedTuple):
    """An argument of a program: a number, a vertex of the graph, or a file of values."""

    name: str
    value: Any


def numeric(text: str) -> Argument:
    """Parse NAME=VALUE; the value is a number, true or false, or @FILE."""
    return _parsed(text, _number_or_file, "3, 0.85, true or @FILE")


def of_vertex(text: str) -> Argument:
    """Parse NAME=V; V is a vertex id or a name."""
    return _parsed(text, vertex, "a vertex")


def _parsed(text: str, parse: Callable[[str], Any], values: str) -> Argument:
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier() and value):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not NAME=VALUE with a value such as {values}"
        )
    try:
        return Argument(name, parse(value))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{value!r} is not a value of {name}; give a number, true, false, or @FILE with a "
            f"number for each vertex; {name} that is a vertex with a name goes with --vertex"
        ) from None


def _number_or_file(text: str) -> int | float | bool | Path:
    if text.startswith("@"):
        return Path(text[1:])
    if text.lower() in _FLAGS:
        return _FLAGS[text.lower()]
    try:
        return int(text)
    except ValueError:
        return float(text)


@contextmanager
def _users_errors(path: Path) -> Iterator[None]:
    """Name the line of an exception that the user's file raised, instead of a traceback."""
    try:
        yield
    except HeteroBFSError:
        raise
    except SyntaxError as error:
        at = path if error.filename in (None, str(path.absolute())) else error.filename
        where = f"{at}:{error.lineno}" if error.lineno else f"{at}"
        raise ProgramError(f"{where}: {error.msg}; correct the file") from None
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f":{one.lineno}" for one in frames if one.filename == str(path.absolute())]
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise ProgramError(f"{path}{(lines or [''])[-1]}: {text}; correct the file") from None


def load_program(path: Path, name: str | None) -> Program:
    """Return the program of a file: its only class derived from `hb.Program`, or the one named.

    Raises `ProgramError` if the file cannot be imported, or does not have one such class.
    """
    from hetero_bfs.programs.program import Program

    module = _module_of(path)
    found = {key: value for key, value in vars(module).items() if _is_program(value, Program)}
    own = {key: one for key, one in found.items() if one.__module__ == module.__name__}
    if name is not None and name not in found:
        raise ProgramError(
            f"{path}: --program is {name}, and the file has {_listed(found)}; name one of "
            "its classes derived from hb.Program"
        )
    if name is None and len(own) != 1:
        raise ProgramError(
            f"{path}: has {_listed(own)}; "
            + ("name one by --program" if own else "write a class derived from hb.Program")
        )
    kind = found[name] if name is not None else next(iter(own.values()))
    with _users_errors(path):
        made: Program = kind()
    return made


def _is_program(value: Any, base: type) -> bool:
    return isinstance(value, type) and issubclass(value, base) and value is not base


def _listed(found: dict[str, Any]) -> str:
    return f"the programs {', '.join(found)}" if found else "none"


def _module_of(path: Path) -> ModuleType:
    """Import a file. Its folder comes first on the path, as if Python ran the file."""
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "no such file"
        raise GraphFileError(f"{path}: {what}; name a file of Python with a vertex program")
    spec = spec_from_file_location(f"{path.stem}_of_user", path.absolute())
    if spec is None or spec.loader is None:
        raise ProgramError(f"{path}: is not a file of Python; its name must end in .py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.absolute().parent))
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # as for a script
    try:
        with _users_errors(path), redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
    return module
