"""Arguments that several commands share, and the functions that parse their values."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hetero_bfs.scheduling.strategies import NAMED_SELECTORS, STRATEGIES, schedule_names

if TYPE_CHECKING:
    from hetero_bfs.options import EngineOptions

_FLAGS = {"true": True, "false": False}
_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def option_of(name: str) -> str:
    return "--" + name.replace("_", "-")


def fields_of(kind: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given and are named like fields of a dataclass."""
    known = kind.__dataclass_fields__
    return {n: v for n, v in vars(options).items() if n in known and v is not None}


def engine_options(options: argparse.Namespace) -> EngineOptions:
    from hetero_bfs.options import EngineOptions

    return EngineOptions(**fields_of(EngineOptions, options))


def add_graph_argument(command: argparse.ArgumentParser, text: str = "graph file") -> None:
    command.add_argument("graph", type=Path, metavar="GRAPH", help=text)
    add_reading(command)


def add_reading(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--renumber",
        action="store_true",
        help="the file's vertices have names, 64-bit ids or ids with gaps: number them, and use "
        "the names in options and results",
    )
    add(
        "--columns",
        metavar="NAMES",
        help="columns of a table, by their names or from 1 on, such as source,target,weight",
    )
    add("--format", metavar="SUFFIX", help="read the file as if its name ended so, such as .csv")


def add_file(command: argparse.ArgumentParser, option: str, text: str) -> None:
    command.add_argument(option, type=Path, metavar="FILE", help=text)


def add_trace(command: argparse.ArgumentParser, record: str) -> None:
    text = f"write one CSV record per {record}, or a timeline if the name ends in .json or .svg"
    add_file(command, "--trace", text)


def add_json(command: argparse.ArgumentParser, what: str) -> None:
    add_file(command, "--json", f'write the {what} as JSON, "-" for stdout')


def add_power_log(command: argparse.ArgumentParser) -> None:
    add_file(command, "--power-log", "CSV file that an external meter writes: time, watts")


def add_directed(
    command: argparse.ArgumentParser, text: str = "keep the edges' direction (graph files)"
) -> None:
    command.add_argument("--directed", action="store_true", help=text)


def add_selector_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--selector",
        type=_selector,
        default="auto",
        help=f"{', '.join(NAMED_SELECTORS)}, or fixed:NAME ({', '.join(STRATEGIES)}; "
        "with commas one per level); default %(default)s: the learned model or its "
        "thresholds, whichever is predicted to be faster",
    )
    add(
        "--decision-interval",
        type=positive,
        default=1,
        metavar="N",
        help="choose anew every N levels (default %(default)s)",
    )
    add(
        "--no-correction",
        dest="correction",
        action="store_false",
        help="use the speed model unchanged: the same choices in every search",
    )


def add_memory_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--max-alloc",
        dest="max_alloc_bytes",
        type=byte_count,
        metavar="BYTES",
        help="largest part of the edge array, such as 256M (default: the device's limit)",
    )
    add(
        "--device-memory",
        dest="device_memory_bytes",
        type=byte_count,
        metavar="BYTES",
        help="most memory of the OpenCL device to use, such as 8G (default: all); edges that do "
        "not fit stream from the host",
    )


def add_order_argument(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--order",
        choices=("auto", "degree", "locality", "compact", "given"),
        default="auto",
        help="numbering of the vertices: degree (falling), locality (partitions), compact (as "
        "given without isolated ones), given; default %(default)s: by the graph",
    )


def add_output_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--no-validate", dest="validate", action="store_false", help="skip the checks")
    add_json(command, "report")
    add_verbose(command)


def add_verbose(command: argparse.ArgumentParser) -> None:
    text = "print every level, window or iteration"
    command.add_argument("-v", "--verbose", action="store_true", help=text)


def add_device_arguments(command: argparse.ArgumentParser, several: bool = False) -> None:
    add = command.add_argument
    more = "several with commas, or all; " if several else ""
    text = f"OpenCL device by index or part of its name; {more}auto for the usual one, cpu for none"
    add("--device", metavar="DEVICE", help=text)
    add("--threads", type=integer, metavar="N", help="CPU threads (default all cores)")


def _integer(text: str, low: int, high: int, what: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{value} is not within {low} to {high}")
    return value


def integer(text: str) -> int:
    """Parse an integer; its range is checked where it is used."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer") from None


def number(text: str) -> float:
    """Parse a number; its range is checked where it is used."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def scale(text: str) -> int:
    return _integer(text, 1, 31, "a scale")


def positive(text: str) -> int:
    return _integer(text, 1, 2**31 - 1, "a positive integer")


def depth(text: str) -> int:
    return _integer(text, 0, 2**31 - 1, "a number of edges")


def seed(text: str) -> int:
    return _integer(text, 0, 2**64 - 1, "a seed")


MAX_VERTEX = 2**32 - 3
"""The largest vertex id. graph/list_checks.py has the number of vertices, and imports NumPy."""


class VertexName(str):
    """A name that is not a vertex id of the package."""


def vertex(text: str) -> int | VertexName:
    """Parse a vertex id, or else take a name; whether the graph has either shows later.

    A name such as 007 is not an id.
    """
    try:
        number = int(text)
    except ValueError:
        return VertexName(text)
    return number if str(number) == text else VertexName(text)


class Argument(NamedTuple):
    """An argument of a program: a number, a vertex of the graph, or a file of values."""

    name: str
    value: Any


def numeric(text: str) -> Argument:
    """Parse NAME=VALUE; the value is a number, true or false, or @FILE."""
    return _named_value(text, _number_or_file, "3, 0.85, true or @FILE")


def of_vertex(text: str) -> Argument:
    return _named_value(text, vertex, "a vertex")


def _named_value(text: str, parse: Callable[[str], Any], values: str) -> Argument:
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


def byte_count(text: str) -> int:
    """Parse a number of bytes, with K, M, G or T for powers of 1024."""
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)(i?b)?", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write 268435456 or 256M")
    size = int(match[1]) * _SIZES[match[2]]
    if size < 4:
        raise argparse.ArgumentTypeError(f"{text!r} is below one edge (4 bytes)")
    return size


def _selector(text: str) -> str:
    if text.startswith("fixed:"):
        try:
            schedule_names(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return text
    if text in NAMED_SELECTORS:
        return text
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a selector; choose {', '.join(NAMED_SELECTORS)}, or a schedule such as "
        f"fixed:TC,BC of the strategies {', '.join(STRATEGIES)}"
    )
