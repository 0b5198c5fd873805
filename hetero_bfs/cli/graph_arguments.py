"""Arguments of the commands on graph files: `convert`, `info`, `generate` and `layers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hetero_bfs.cli.argument_groups import (
    add_device_arguments,
    add_directed,
    add_file,
    add_graph_argument,
    add_json,
    add_reading,
    number,
    option_of,
    positive,
    scale,
    seed,
    vertex,
)
from hetero_bfs.graph.io.formats import help_text, suffixes


def add_convert(commands: Any) -> None:
    command = commands.add_parser(
        "convert",
        help="convert a graph file, for example to the fast .hbg",
        description=f"Convert a graph file to another format. {help_text()} OUT cannot end in "
        f"{' '.join(sorted({*suffixes()} - {*suffixes(writable=True)}))}.",
    )
    command.add_argument("input", type=Path, metavar="IN", help="file to read")
    command.add_argument("output", type=Path, metavar="OUT", help="file to write")
    add_reading(command)
    add_directed(command)
    command.add_argument("--weighted", action="store_true", help="keep the edges' weights")


FAMILIES = {
    "kronecker": ("scale", "degree", "seed", "weighted", "directed"),
    "rmat": ("scale", "degree", "seed", "a", "b", "c", "d", "directed"),
    "uniform": ("scale", "degree", "seed", "directed"),
    "bipartite": ("scale", "right_scale", "degree", "seed"),
    "grid": ("rows", "columns"),
    "smallworld": ("scale", "degree", "rewired", "seed"),
    "tails": ("scale", "degree", "seed", "chains", "length"),
}
"""The families of `generate`, and the options that each of them has."""


def add_generate(commands: Any) -> None:
    command = commands.add_parser(
        "generate",
        help="generate a graph and write it to a file",
        description="Generate a graph and write it to OUT, whose suffix selects the format, as for "
        "convert. kronecker: Graph500's graph; rmat: R-MAT; uniform: ends drawn uniformly; "
        "bipartite: each left vertex has edges to right ones; grid: a rectangle; smallworld: a "
        "ring, partly rewired; tails: a Kronecker graph with chains.",
    )
    add = command.add_argument
    add("family", choices=tuple(FAMILIES), metavar="FAMILY", help=", ".join(FAMILIES))
    add("output", type=Path, metavar="OUT", help="file to write")

    def families_with(name: str) -> str:
        found = [family for family, names in FAMILIES.items() if name in names]
        return "all but grid" if len(found) == len(FAMILIES) - 1 else ", ".join(found)

    for name, kind, text in (
        ("scale", scale, "log2 of the vertices, of a core or of the left side (default 16)"),
        ("right_scale", scale, "log2 of the right side (default: that of --scale)"),
        ("degree", positive, "edges drawn per vertex (default 16; smallworld 8)"),
        ("seed", seed, "seed (default that of the family: kronecker 2, rmat 1, else 2018)"),
        ("a", number, "share of the first quadrant (default 0.57)"),
        ("b", number, "share of the second quadrant (default 0.19)"),
        ("c", number, "share of the third quadrant (default 0.19)"),
        ("d", number, "share of the fourth quadrant (default 0.05)"),
        ("rows", positive, "rows of the grid (default 256)"),
        ("columns", positive, "columns of the grid (default: as many as rows)"),
        ("rewired", number, "share of the edges with a drawn end (default 0.02)"),
        ("chains", positive, "number of chains (default 8)"),
        ("length", positive, "vertices of a chain (default 500)"),
    ):
        metavar = "SHARE" if kind is number else "N"
        add(option_of(name), type=kind, metavar=metavar, help=f"{families_with(name)}: {text}")
    for name, text in (
        ("weighted", "float32 weights from 0 to 1, as in Graph500"),
        ("directed", "the edges are directed"),
    ):
        add(f"--{name}", action="store_true", help=f"{families_with(name)}: {text}")


def add_info(commands: Any) -> None:
    command = commands.add_parser(
        "info",
        help="describe a graph file: sizes, degrees, weights, components",
        description="Read a graph file and print its vertices, edges, degrees, weights, "
        "components and the memory that it takes.",
    )
    add_graph_argument(command)
    add_directed(command)
    add_json(command, "description")


def add_layers(commands: Any) -> None:
    command = commands.add_parser(
        "layers",
        help="number a graph layer by layer, once for all runs in mode layered",
        description="Number the vertices layer by layer from a vertex, and print depth, sizes of "
        "the layers and launches of a sweep. `run --mode layered` takes the file that --out names "
        "as its graph, and reads its lists as they are. All other runs on that file keep this "
        "order, too, and searches may take longer.",
    )
    add_graph_argument(command)
    command.add_argument(
        "--source",
        "--root",
        dest="root",
        type=vertex,
        required=True,
        metavar="V",
        help="vertex where the layers begin",
    )
    add_file(command, "--out", "write the graph with its layers to .hbg, with its ids as names")
    command.add_argument("--weighted", action="store_true", help="keep the edges' weights")
    add_directed(command)
    add_device_arguments(command)
    add_json(command, "description")
