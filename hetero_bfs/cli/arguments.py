"""The command line's arguments: names, defaults, help, and the form of values."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from hetero_bfs.selection.strategies import NAMED_SELECTORS, OBJECTIVES, STRATEGIES, schedule_names

_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def make_parser(version: str) -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="hetero-bfs",
        description="Adaptive breadth-first search on CPUs and OpenCL devices.",
    )
    parser.add_argument("--version", action="version", version=f"hetero-bfs {version}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_graph500(commands)
    _add_bfs(commands)
    _add_sssp(commands)
    _add_train(commands)
    _add_study(commands)
    _add_devices(commands)
    _add_convert(commands)
    return parser


def _add_graph500(commands: Any) -> None:
    command = commands.add_parser(
        "graph500",
        help="run the Graph500 benchmark and print its report",
        description="Generate a Kronecker graph, construct, search from 64 keys, validate, report.",
    )
    add = command.add_argument
    add("--scale", type=_scale, help="log2 of the vertices (default 18)")
    add("--edgefactor", type=positive, help="edges per vertex (default 16)")
    add("--sources", type=positive, default=64, help="search keys (default %(default)s)")
    add("--seed1", type=_seed, default=2, help="generator's first seed (default %(default)s)")
    add("--seed2", type=_seed, default=3, help="generator's second seed (default %(default)s)")
    add("--graph", type=Path, metavar="FILE", help="search this graph instead of generating one")
    add(
        "--regenerate",
        action="store_true",
        help="generate the edges anew for each pass instead of holding them (also done if memory "
        "is short)",
    )
    add("--trace", type=Path, metavar="FILE", help="write one CSV record per level")
    add("--power-log", type=Path, metavar="FILE", help="CSV of an external meter: time, watts")
    _add_engine_arguments(command)


def _add_bfs(commands: Any) -> None:
    command = commands.add_parser(
        "bfs",
        help="search any graph from one vertex",
        description="Search a graph file (.txt .el .tsv .wel .mtx, .gz of them, .sg, .wsg, .hbg) "
        "from one vertex.",
    )
    add = command.add_argument
    add("graph", type=Path, metavar="GRAPH", help="graph file")
    add("--source", type=_vertex, required=True, metavar="V", help="vertex id as in the file")
    add("--out", type=Path, metavar="FILE", help="write parents (NumPy .npy, int64, -1 unreached)")
    add("--levels", type=Path, metavar="FILE", help="write levels (NumPy .npy, int32)")
    _add_engine_arguments(command)


def _add_sssp(commands: Any) -> None:
    command = commands.add_parser(
        "sssp",
        help="find shortest paths from one vertex of a weighted graph",
        description=(
            "Find the least distances from one vertex of a weighted graph file: an edge list with "
            "a third column, a Matrix Market file of numbers, .wel, .wsg, or .hbg with weights."
        ),
    )
    add = command.add_argument
    add("graph", type=Path, metavar="GRAPH", help="graph file with weights of at least 0")
    add("--source", type=_vertex, required=True, metavar="V", help="vertex id as in the file")
    add("--out", type=Path, metavar="FILE", help="write distances (NumPy .npy, float64, inf)")
    add("--parents", type=Path, metavar="FILE", help="write parents (NumPy .npy, int64, -1)")
    add("--trace", type=Path, metavar="FILE", help="write one CSV record per window")
    _add_device_arguments(command)
    add("--directed", action="store_true", help="keep the edges' direction")
    _add_order_argument(command)
    _add_output_arguments(command)


def _add_train(commands: Any) -> None:
    command = commands.add_parser(
        "train",
        help="measure every strategy on this machine and fit its speed model",
        description=(
            "Measure every strategy on every level of generated graphs and fit this machine's "
            "speed model, which the other commands then use. An interrupted training continues "
            "where it stopped."
        ),
    )
    add = command.add_argument
    how = command.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="a first model in a minute or two")
    how.add_argument(
        "--calibrate",
        action="store_true",
        help="a model from a few small graphs, with another machine's tuning of the kernels",
    )
    add(
        "--from",
        dest="source",
        metavar="NAME",
        help="the model whose tuning --calibrate takes (default: that of the most similar machine)",
    )
    add(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for model and samples; selectors are compared only where models are found",
    )
    add(
        "--power-only",
        action="store_true",
        help="only measure watts, and add them to the existing model",
    )
    add(
        "--power-log",
        type=Path,
        metavar="FILE",
        help="CSV file that an external meter writes (time, watts)",
    )
    _add_device_arguments(command)


def _add_study(commands: Any) -> None:
    command = commands.add_parser(
        "study",
        help="measure this machine and write the paper's tables and figures as a page",
        description=(
            "Measure strategies and selectors on Kronecker graphs or graph files and write one "
            "HTML page, with a PNG and a CSV file for each figure. The folder must be new, empty, "
            "or hold an earlier study, which is replaced. It is written at the end."
        ),
    )
    add = command.add_argument
    add("out_dir", type=Path, metavar="OUT_DIR", help="folder for page, pictures and tables")
    add(
        "--scale",
        type=_scale,
        nargs="+",
        default=[],
        metavar="N",
        help="Kronecker graphs, log2 of the vertices (default 14 to 18; on a GPU 16 18 20 22; "
        "none with --graph alone)",
    )
    add("--graph", type=Path, nargs="+", default=[], metavar="FILE", help="graph files to study")
    add("--directed", action="store_true", help="keep the edges' direction (graph files)")
    add(
        "--families",
        action=argparse.BooleanOptionalAction,
        help="also measure regret on a graph of each other family, such as grids and small worlds "
        "(default unless --scale or --graph is given)",
    )
    add("--keys", type=positive, default=8, help="search keys of a graph (default %(default)s)")
    add("--rounds", type=positive, default=3, help="times each is searched (default %(default)s)")
    add("--quick", action="store_true", help="a first look: scales 12 and 14, 4 keys, 2 rounds")
    add("--power-log", type=Path, metavar="FILE", help="CSV of an external meter: time, watts")
    _add_device_arguments(command)
    add("--json", type=Path, metavar="FILE", help='write the summary as JSON, "-" for stdout')


def _add_devices(commands: Any) -> None:
    command = commands.add_parser("devices", help="list the OpenCL devices")
    command.add_argument("--json", type=Path, metavar="FILE", help='write JSON, "-" for stdout')


def _add_convert(commands: Any) -> None:
    command = commands.add_parser(
        "convert",
        help="convert a graph file, for example to the fast .hbg",
        description="Convert between .txt .el .tsv .wel .mtx (and .gz of them), .sg, .wsg and "
        ".hbg, by suffix.",
    )
    command.add_argument("input", type=Path, metavar="IN")
    command.add_argument("output", type=Path, metavar="OUT")
    command.add_argument("--directed", action="store_true", help="keep the edges' direction")
    command.add_argument(
        "--weighted",
        action="store_true",
        help="keep the edges' weights: the third column of text, the values of .mtx, those of "
        ".wsg and .hbg",
    )


def _add_engine_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--selector",
        type=_selector,
        default="auto",
        help=f"{', '.join(NAMED_SELECTORS)}, or fixed:NAME ({', '.join(STRATEGIES)}; "
        "with commas one per level); default %(default)s: the fastest one in this machine's "
        "training, average without training",
    )
    add(
        "--optimize",
        choices=OBJECTIVES,
        default="time",
        help="what the selector minimises: seconds, joules, or edp (joules times seconds); the "
        "latter two need watts measured in training (default %(default)s)",
    )
    _add_device_arguments(command)
    add(
        "--max-alloc",
        dest="max_alloc_bytes",
        type=byte_count,
        metavar="BYTES",
        help="largest part of the edge array (256M)",
    )
    add(
        "--device-memory",
        dest="device_memory_bytes",
        type=byte_count,
        metavar="BYTES",
        help="most memory of the OpenCL device to use (8G; default all); edges that do not fit "
        "stream from the host",
    )
    add("--directed", action="store_true", help="keep the edges' direction (graph files)")
    _add_order_argument(command)
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
    _add_output_arguments(command)


def _add_order_argument(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--order",
        choices=("auto", "degree", "locality", "compact", "given"),
        default="auto",
        help="numbering of the vertices: degree (falling), locality (partitions), compact (as "
        "given without isolated ones), given; default %(default)s: by the graph",
    )


def _add_output_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--no-validate", dest="validate", action="store_false", help="skip the checks")
    add("--json", type=Path, metavar="FILE", help='write the report as JSON, "-" for stdout')
    add("-v", "--verbose", action="store_true", help="print every level or window of each search")


def _add_device_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--device", metavar="DEVICE", help="OpenCL device by index or part of its name")
    add(
        "--devices",
        choices=("all", "cpu"),
        default="all",
        help="cpu: search without an OpenCL device (default %(default)s)",
    )
    add("--threads", type=positive, metavar="N", help="CPU threads (default all cores)")


def _integer(text: str, low: int, high: int, what: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{value} is not within {low} to {high}")
    return value


def _scale(text: str) -> int:
    return _integer(text, 1, 31, "a scale")


def positive(text: str) -> int:
    """Read a number of at least 1."""
    return _integer(text, 1, 2**31 - 1, "a positive integer")


def _seed(text: str) -> int:
    return _integer(text, 0, 2**64 - 1, "a seed")


def _vertex(text: str) -> int:
    return _integer(text, 0, 2**32 - 3, "a vertex id")


def byte_count(text: str) -> int:
    """Read a number of bytes, with K, M, G or T for powers of 1024."""
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
        f"{text!r} is none; choose {', '.join(NAMED_SELECTORS)} or a schedule such as fixed:TC,BC "
        f"of {', '.join(STRATEGIES)}"
    )
