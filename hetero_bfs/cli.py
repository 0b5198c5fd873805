"""The command line: arguments -> one call -> print. Exit status 0 done, 1 failure, 2 usage."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from hetero_bfs.errors import HeteroBFSError

_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 2
    if getattr(options, "device", None) is not None and options.devices == "cpu":
        parser.error("--device names an OpenCL device, --devices cpu wants none")
    if options.command == "graph500" and options.directed and options.graph is None:
        parser.error("--directed goes with --graph FILE; generated graphs are undirected")
    try:
        _prepare(options)
        status: int = options.run(options)
        return status
    except HeteroBFSError as error:
        print(f"hetero-bfs: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print(
            "hetero-bfs: out of memory; choose a smaller graph or free some memory",
            file=sys.stderr,
        )
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        print(f"hetero-bfs: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nhetero-bfs: interrupted", file=sys.stderr)
        return 130


def _prepare(options: argparse.Namespace) -> None:
    """Check what can be checked before any work, and set up progress bars and threads."""
    from hetero_bfs import progress
    from hetero_bfs.files import check_writable

    for name in ("json", "trace", "out", "levels"):
        path = getattr(options, name, None)
        if path is not None and str(path) != "-" and options.command != "train":
            check_writable(path)
    if getattr(options, "device", None) is not None and options.devices == "all":
        from hetero_bfs.devices.opencl import choose_device

        choose_device(options.device)

    progress.enabled = True
    if getattr(options, "threads", None) is not None:
        import numba

        if options.threads > numba.config.NUMBA_NUM_THREADS:
            raise HeteroBFSError(
                f"--threads {options.threads}: this machine allows at most "
                f"{numba.config.NUMBA_NUM_THREADS}"
            )
        numba.set_num_threads(options.threads)


def _graph500(options: argparse.Namespace) -> int:
    from hetero_bfs.graph500 import Graph500Options, format_report, run_graph500
    from hetero_bfs.trace import write_csv

    _say_when_compiling()
    report = run_graph500(
        Graph500Options(
            scale=options.scale,
            edgefactor=options.edgefactor,
            roots=options.roots,
            seed1=options.seed1,
            seed2=options.seed2,
            graph=options.graph,
            directed=options.directed,
            validate=options.validate,
            power_log=options.power_log,
            **_engine_options(options),
        )
    )
    _print_notes(report.notes)
    print(format_report(report, options.verbose), file=_text_stream(options))
    if options.trace is not None:
        write_csv(options.trace, report.trace_rows())
    _write_json(options.json, report.to_dict())
    return 0 if report.valid else 1


def _bfs(options: argparse.Namespace) -> int:
    import numpy as np

    from hetero_bfs.engine import Engine
    from hetero_bfs.files import replacing
    from hetero_bfs.io import read
    from hetero_bfs.trace import format_levels
    from hetero_bfs.validate import raise_if_invalid, validate

    _say_when_compiling()
    edges = read(options.graph, options.directed)
    with Engine(edges, **_engine_options(options)) as engine:
        result = engine.bfs(options.source)
    _print_notes(engine.notes)
    if result.reached == 1:
        print(f"note: vertex {options.source} has no edge to another vertex", file=sys.stderr)
    if options.validate:
        raise_if_invalid(validate(edges, options.source, result.parent, result.level))
    depth = int(result.level.max())
    for path, array in ((options.out, result.parent), (options.levels, result.level)):
        if path is not None:
            with replacing(path, "wb") as stream:
                np.save(stream, array)
    summary = {
        "graph": str(options.graph),
        "source": options.source,
        "num_vertices": edges.num_vertices,
        "num_input_edges": edges.num_input_edges,
        "reached": result.reached,
        "depth": depth,
        "nedge": result.nedge,
        "time_seconds": result.seconds,
        "gather_seconds": result.gather_seconds,
        "teps": result.teps,
        "selector": engine.selector.name,
        "device": None if engine.device_info is None else engine.device_info.name,
        "strategies": [trace.strategy for trace in result.traces],
        "valid": True if options.validate else None,
    }
    text = _text_stream(options)
    print(
        f"reached {result.reached} of {edges.num_vertices} vertices in {depth} levels\n"
        f"{result.nedge} edges in {1e3 * result.seconds:.3f} ms, {result.teps / 1e6:.1f} MTEPS"
        f"{', valid' if options.validate else ''}",
        file=text,
    )
    device = engine.device_info
    name = "none" if device is None else device.name
    print(f"selector {engine.selector.name}, device {name}", file=text)
    if options.verbose:
        print(format_levels(result.traces), file=text)
    _write_json(options.json, summary)
    return 0


def _convert(options: argparse.Namespace) -> int:
    from hetero_bfs.io import read, write

    graph = read(options.input, options.directed)
    write(graph, options.output)
    print(
        f"{options.output}: {graph.num_vertices} vertices, {graph.num_input_edges} input edges, "
        f"{options.output.stat().st_size} bytes"
    )
    return 0


def _devices(options: argparse.Namespace) -> int:
    from hetero_bfs.devices.opencl import NO_RUNTIME, choose_device, list_devices
    from hetero_bfs.machine import cpu_name, usable_cores

    found = list_devices()
    if options.json is not None:
        _write_json(options.json, [device.to_dict() for device in found])
        if str(options.json) == "-":
            return 0
    print(f"host: {cpu_name()}, {usable_cores()} cores")
    if not found:
        print(NO_RUNTIME)
        return 0
    default = choose_device().index if any(d.problem is None for d in found) else None
    for device in found:
        mark = "  (default)" if device.index == default else ""
        print(f"{device.index}: {device.name}{mark}")
        print(f"   platform         {device.platform}, {device.version}, driver {device.driver}")
        print(f"   type             {device.type}, {device.compute_units} compute units")
        print(
            f"   memory           {device.memory_bytes / 2**30:.2f} GiB, "
            f"{'shared with the host' if device.unified_memory else 'its own'}, "
            f"at most {device.max_alloc_bytes / 2**30:.2f} GiB per buffer, "
            f"{device.local_memory_bytes // 1024} KiB local"
        )
        if device.problem is not None:
            print(f"   cannot be used   {device.problem}")
    return 0


def _train(options: argparse.Namespace) -> int:
    from hetero_bfs.training import run_training

    _say_when_compiling()
    return int(run_training(options.quick, options.device, options.devices, options.out))


def _engine_options(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "selector": options.selector,
        "device": options.device,
        "devices": options.devices,
        "max_alloc_bytes": options.max_alloc,
        "order": "degree" if options.relabel else "given",
        "decision_interval": options.decision_interval,
    }


def _text_stream(options: argparse.Namespace) -> TextIO:
    """Return where text goes: not between the JSON when that goes to standard output."""
    return sys.stderr if str(options.json) == "-" else sys.stdout


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def _say_when_compiling() -> None:
    """Tell on stderr, once, when Numba compiles: code that it has on disk is only loaded."""
    from numba.core import event

    class Announcer(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said:
                print("compiling for this machine; later runs find it on disk", file=sys.stderr)
            self.said = True

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcer())


def _write_json(path: Path | None, data: Any) -> None:
    """Write JSON to a file, "-" being standard output."""
    if path is None:
        return
    text = json.dumps(data, indent=1, allow_nan=False)
    if str(path) == "-":
        print(text)
        return
    from hetero_bfs.files import replacing

    with replacing(path) as stream:
        stream.write(text + "\n")


# Arguments.


def _parser() -> argparse.ArgumentParser:
    from hetero_bfs import __version__

    parser = argparse.ArgumentParser(
        prog="hetero-bfs",
        description="Adaptive breadth-first search on CPUs and OpenCL devices.",
    )
    parser.add_argument("--version", action="version", version=f"hetero-bfs {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_graph500(commands)
    _add_bfs(commands)
    _add_train(commands)
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
    add("--scale", type=_scale, default=18, help="log2 of the vertices (default %(default)s)")
    add("--edgefactor", type=_positive, default=16, help="edges per vertex (default %(default)s)")
    add("--roots", type=_positive, default=64, help="search keys (default %(default)s)")
    add("--seed1", type=_seed, default=2, help="generator's first seed (default %(default)s)")
    add("--seed2", type=_seed, default=3, help="generator's second seed (default %(default)s)")
    add("--graph", type=Path, metavar="FILE", help="search this graph instead of generating one")
    add("--trace", type=Path, metavar="FILE", help="write one CSV record per level")
    add("--power-log", type=Path, metavar="FILE", help="CSV of an external meter: time, watts")
    _add_engine_arguments(command)
    command.set_defaults(run=_graph500)


def _add_bfs(commands: Any) -> None:
    command = commands.add_parser(
        "bfs",
        help="search any graph from one vertex",
        description="Search a graph file (.txt .el .mtx, .gz of them, .sg, .hbg) from one vertex.",
    )
    add = command.add_argument
    add("graph", type=Path, metavar="GRAPH", help="graph file")
    add("--source", type=_vertex, required=True, metavar="V", help="vertex id as in the file")
    add("--out", type=Path, metavar="FILE", help="write parents (NumPy .npy, int64, -1 unreached)")
    add("--levels", type=Path, metavar="FILE", help="write levels (NumPy .npy, int32)")
    _add_engine_arguments(command)
    command.set_defaults(run=_bfs)


def _add_train(commands: Any) -> None:
    command = commands.add_parser(
        "train",
        help="measure every strategy on this machine and fit its speed model",
        description=(
            "Measure every strategy on every level of generated graphs and fit this machine's "
            "speed model, which the other commands then use. An interrupted training goes on "
            "where it stopped."
        ),
    )
    add = command.add_argument
    add("--quick", action="store_true", help="a first model in about two minutes")
    add("--out", type=Path, metavar="DIR", help="folder for model and samples")
    _add_device_arguments(command)
    command.set_defaults(run=_train)


def _add_devices(commands: Any) -> None:
    command = commands.add_parser("devices", help="list the OpenCL devices")
    command.add_argument("--json", type=Path, metavar="FILE", help='write JSON, "-" for stdout')
    command.set_defaults(run=_devices)


def _add_convert(commands: Any) -> None:
    command = commands.add_parser(
        "convert",
        help="convert a graph file, for example to the fast .hbg",
        description="Convert between .txt .el .mtx (and .gz of them), .sg and .hbg, by suffix.",
    )
    command.add_argument("input", type=Path, metavar="IN")
    command.add_argument("output", type=Path, metavar="OUT")
    command.add_argument("--directed", action="store_true", help="keep the edges' direction")
    command.set_defaults(run=_convert)


def _add_engine_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--selector",
        type=_selector,
        default="auto",
        help="auto, learned, average, alpha-beta, daga, or fixed:TC (TG, BC, BG, BGC; with commas "
        "one per level); default %(default)s: learned if this machine was trained, else average",
    )
    _add_device_arguments(command)
    add("--max-alloc", type=_size, metavar="BYTES", help="largest part of the edge array (256M)")
    add("--directed", action="store_true", help="keep the edges' direction (graph files)")
    add("--no-relabel", dest="relabel", action="store_false", help="keep the given vertex order")
    add(
        "--decision-interval",
        type=_positive,
        default=1,
        metavar="N",
        help="choose anew every N levels (default %(default)s)",
    )
    add("--no-validate", dest="validate", action="store_false", help="skip the five checks")
    add("--json", type=Path, metavar="FILE", help='write the report as JSON, "-" for stdout')
    add("-v", "--verbose", action="store_true", help="print the levels of every search")


def _add_device_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--device", metavar="DEVICE", help="OpenCL device by index or part of its name")
    add(
        "--devices",
        choices=("all", "cpu"),
        default="all",
        help="cpu: search without an OpenCL device (default %(default)s)",
    )
    add("--threads", type=_positive, metavar="N", help="CPU threads (default all cores)")


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


def _positive(text: str) -> int:
    return _integer(text, 1, 2**31 - 1, "a positive integer")


def _seed(text: str) -> int:
    return _integer(text, 0, 2**64 - 1, "a seed")


def _vertex(text: str) -> int:
    return _integer(text, 0, 2**32 - 3, "a vertex id")


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)(i?b)?", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write 268435456 or 256M")
    size = int(match[1]) * _SIZES[match[2]]
    if size < 4:
        raise argparse.ArgumentTypeError(f"{text!r} is below one edge (4 bytes)")
    return size


def _selector(text: str) -> str:
    if text in ("auto", "learned", "average", "alpha-beta", "daga"):
        return text
    if re.fullmatch(r"fixed:(TC|TG|BC|BG|BGC)(,(TC|TG|BC|BG|BGC))*", text):
        return text
    raise argparse.ArgumentTypeError(
        f"{text!r}; choose auto, learned, average, alpha-beta, daga or fixed:TC, fixed:TC,BG, ..."
    )


if __name__ == "__main__":
    sys.exit(main())
