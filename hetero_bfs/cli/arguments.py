"""The command line's arguments: one function per command, and one for all algorithms.

argument_groups.py has arguments that several commands share, graph_arguments.py the commands on
graph files.
"""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import Any, NoReturn

from hetero_bfs.algorithms.table import Row
from hetero_bfs.algorithms.table import commands as algorithm_commands
from hetero_bfs.cli.argument_groups import (
    add_device_arguments,
    add_directed,
    add_file,
    add_graph_argument,
    add_json,
    add_memory_arguments,
    add_order_argument,
    add_output_arguments,
    add_power_log,
    add_selector_arguments,
    add_trace,
    add_verbose,
    depth,
    integer,
    number,
    numeric,
    of_vertex,
    option_of,
    positive,
    scale,
    seed,
    vertex,
)
from hetero_bfs.cli.graph_arguments import add_convert, add_generate, add_info, add_layers
from hetero_bfs.graph.io.formats import help_text
from hetero_bfs.study import PAPERS

_TO = "to .npy, or with the vertices' names to .csv, .npz or .parquet"

_READERS = {"int": integer, "float": number}
"""The parser of an algorithm's argument, by its annotation."""

_BY_NAME: dict[str, dict[str, Any]] = {
    "source": {"type": vertex, "metavar": "V"},
    "target": {"type": vertex, "metavar": "V"},
    "depth_limit": {"type": depth, "metavar": "N"},
    "dtype": {"choices": ("int64", "int32")},
}
"""How an algorithm's argument is parsed, if its annotation does not say so."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        text = " ".join(f"{self.prog}: error: {message}; see --help".split())
        self.exit(2, f"{text}\n")


def make_parser(version: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="hetero-bfs",
        description="Adaptive breadth-first search on CPUs and OpenCL devices.",
    )
    parser.add_argument("--version", action="version", version=f"hetero-bfs {version}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_graph500(commands)
    for name, row in algorithm_commands().items():
        _add_algorithm(commands, name, row)
    _add_run(commands)
    _add_train(commands)
    _add_study(commands)
    add_json(commands.add_parser("devices", help="list the OpenCL devices"), "list")
    _add_doctor(commands)
    _add_warm_up(commands)
    add_convert(commands)
    add_info(commands)
    add_generate(commands)
    add_layers(commands)
    _add_completion(commands)
    return parser


def option_names(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Map each argument of all commands to its option, for use in messages."""
    found = {"graphs": "--graph"}  # of a study
    for commands in parser._actions:
        if isinstance(commands, argparse._SubParsersAction):
            for action in (one for c in commands.choices.values() for one in c._actions):
                if action.option_strings:
                    found.setdefault(action.dest, action.option_strings[-1])
    return found


def _add_graph500(commands: Any) -> None:
    command = commands.add_parser(
        "graph500",
        help="run the Graph500 benchmark and print its report",
        description="Generate a Kronecker graph, construct, search from 64 keys, validate, report.",
    )
    add = command.add_argument
    add(
        "--kernel",
        choices=("bfs", "sssp"),
        default="bfs",
        help="bfs: breadth-first search, kernel 2; sssp: shortest paths with weights, kernel 3 "
        "(default %(default)s)",
    )
    add("--scale", type=scale, help="log2 of the vertices (default 18)")
    add("--edgefactor", type=positive, help="edges per vertex (default 16)")
    add("--sources", type=positive, default=64, help="search keys (default %(default)s)")
    add("--seed1", type=seed, default=2, help="generator's first seed (default %(default)s)")
    add("--seed2", type=seed, default=3, help="generator's second seed (default %(default)s)")
    add_file(command, "--graph", "search this graph instead of generating one")
    add(
        "--regenerate",
        action="store_true",
        help="generate the edges anew for each pass instead of holding them (also done if memory "
        "is short)",
    )
    add_trace(command, "level or window")
    add_power_log(command)
    add_selector_arguments(command)
    add_device_arguments(command, several=True)
    add_memory_arguments(command)
    add_directed(command)
    add_order_argument(command)
    add_output_arguments(command)


def _add_algorithm(commands: Any, name: str, row: Row[Any, Any]) -> None:
    description = f"{row.description} {help_text()}"
    command = commands.add_parser(name, help=row.help, description=description)
    add_graph_argument(command, row.graph)
    for argument, text in row.options.items():
        _add_option(command, row.parameters[argument], text)
    for option, output in row.outputs.items():
        add_file(command, f"--{option}", f"{output.help} {_TO}")
    add_trace(command, row.record)
    if row.selects:
        add_selector_arguments(command)
    add_device_arguments(command, several=row.selects)
    add_memory_arguments(command)
    add_directed(command, row.directed)
    add_order_argument(command)
    add_output_arguments(command)


def _add_option(command: Any, parameter: inspect.Parameter, text: str) -> None:
    """Add an algorithm's argument, with the type and the default of its `ask` function."""
    option, needed = option_of(parameter.name), parameter.default is inspect.Parameter.empty
    how = _BY_NAME.get(parameter.name)
    if parameter.annotation == "bool":
        command.add_argument(option, action="store_true", help=text)
        return
    if parameter.annotation == "Any" and how is None:
        add_file(command, option, text)
        return
    command.add_argument(
        option,
        action="append" if "Iterable" in parameter.annotation else "store",
        required=needed,
        default=None if needed else parameter.default,
        help=text,
        **(how or {"type": _READERS[parameter.annotation], "metavar": "N"}),
    )


def _add_run(commands: Any) -> None:
    command = commands.add_parser(
        "run",
        help="run a vertex program of a Python file on a graph file",
        description="Run a vertex program: a class derived from hb.Program in a file of Python. "
        + help_text(),
    )
    add = command.add_argument
    add("program_file", type=Path, metavar="PROGRAM", help="Python file with the class")
    add_graph_argument(command)
    add("--program", metavar="NAME", help="the class, if the file has several programs")
    add(
        "--argument",
        type=numeric,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="argument of the program: a number, true, false, or @FILE with a number for each "
        "vertex (.csv, .parquet, .npz, .npy or text); give it once for each argument",
    )
    add(
        "--vertex",
        type=of_vertex,
        action="append",
        default=[],
        metavar="NAME=V",
        help="argument of the program that is a vertex: an id from 0 on, or a name",
    )
    add("--max-iterations", type=depth, metavar="N", help="end after N iterations")
    add(
        "--mode",
        choices=("synchronous", "asynchronous", "layered"),
        default="synchronous",
        help="when vertices see the changes of others (default %(default)s)",
    )
    add(
        "--root",
        type=vertex,
        metavar="V",
        help="vertex where the levels of mode layered begin (default: that of a file of `layers`)",
    )
    add(
        "--num-classes",
        type=positive,
        metavar="N",
        help="classes of mode asynchronous: the first N - 1 colours, and one of all later colours, "
        "which one thread or work-group goes through (default: by their work)",
    )
    add_file(command, "--out", f"write all fields of the state {_TO}")
    add_file(command, "--edges-out", f"write source, target and fields of edges {_TO}")
    add_trace(command, "iteration")
    add_device_arguments(command)
    add_memory_arguments(command)
    add_directed(command, "keep the edges' direction")
    add_order_argument(command)
    add_json(command, "report")
    add_verbose(command)


def _add_train(commands: Any) -> None:
    command = commands.add_parser(
        "train",
        help="measure every strategy on this machine and fit its speed model",
        description=(
            "Measure every strategy on every level of generated graphs and fit this machine's "
            "speed model, which the other commands then use. After an interruption the "
            "next training keeps the graphs that were measured."
        ),
    )
    add = command.add_argument
    add("--quick", action="store_true", help="a rough model in two minutes")
    add(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for model and samples; regret is measured only where models are found",
    )
    add(
        "--budget",
        type=positive,
        metavar="SECONDS",
        help="take about this long, and fit a model to the measurements (default: 105 with "
        "--quick, else until all is measured)",
    )
    add_device_arguments(command)


def _add_study(commands: Any) -> None:
    command = commands.add_parser(
        "study",
        help="measure this machine and write the paper's tables and figures as a page",
        description=(
            "Measure strategies and selectors on Kronecker graphs or graph files and write one "
            "HTML page, with an SVG and a CSV file for each figure. The folder must be new or "
            "empty. It is written at the end."
        ),
    )
    add = command.add_argument
    add(
        "out_dir",
        type=Path,
        nargs="?",
        metavar="OUT_DIR",
        help="folder for page, pictures and tables; with --paper it may be left out",
    )
    add(
        "--paper",
        choices=PAPERS,
        help="show a paper's own tables and figures instead, and print them: zhang is Zhang et "
        "al. 2018, frog is Shi et al. 2018; the others have the paper's name for its system",
    )
    add(
        "--scale",
        type=scale,
        nargs="+",
        default=[],
        metavar="N",
        help="Kronecker graphs, log2 of the vertices (default 14 to 18; on a GPU 16 18 20 22; "
        "with --paper zhang 22 to 26, frog 16 and 18, others 18; none with --graph alone)",
    )
    add(
        "--graph",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="graph files to study; --paper frog takes them, too",
    )
    add_directed(command)
    add(
        "--families",
        action=argparse.BooleanOptionalAction,
        help="also measure regret on graphs of each other family, such as grids, small worlds and "
        "cores with tails (default unless --scale or --graph is given)",
    )
    add("--keys", type=positive, help="search keys of a graph (default 8)")
    add("--rounds", type=positive, default=3, help="searches from each key (default %(default)s)")
    add("--quick", action="store_true", help="a first look: scales 12 and 14, 4 keys, 2 rounds")
    add(
        "--budget",
        type=positive,
        metavar="SECONDS",
        help="measure only as many graphs as fit, the small ones first, at least one; not with "
        "--paper",
    )
    add(
        "--regenerate",
        action="store_true",
        help="with --paper zhang, generate edges again for each pass (also if memory is short)",
    )
    add_power_log(command)
    add_device_arguments(command)
    add_json(command, "summary")


def _add_doctor(commands: Any) -> None:
    command = commands.add_parser(
        "doctor",
        help="report what searches need, what is missing, and how to fix it",
        description="Examine Python, packages, OpenCL drivers and devices, speed models, meters, "
        "MPI, caches, and search a small graph. The exit status is 1 if searches do not work.",
    )
    command.add_argument(
        "--retest",
        action="store_true",
        help="test all kernels on each OpenCL device again (minutes), instead of showing earlier "
        "results",
    )
    add_json(command, "findings")


def _add_warm_up(commands: Any) -> None:
    command = commands.add_parser(
        "warm-up",
        help="compile beforehand what searches need, for an image or a new machine",
        description="Compile the kernels for this machine's CPU, test its OpenCL devices and build "
        "their programs, all into the folder of compiled code (NUMBA_CACHE_DIR). What is there "
        "already is only loaded.",
    )
    command.add_argument(
        "--device",
        metavar="DEVICE",
        default="all",
        help="OpenCL devices by index or part of a name, with commas; auto for the usual one, cpu "
        "for none (default %(default)s)",
    )
    add_json(command, "outcomes")


def _add_completion(commands: Any) -> None:
    command = commands.add_parser(
        "completion",
        help="print a script that lets a shell complete commands and options",
        description="Print a completion script: source it in the shell's start file.",
    )
    command.add_argument("shell", choices=("bash", "zsh"))
