"""The command line: arguments -> one call -> print. Exit status 0 done, 1 failure, 2 usage."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from hetero_bfs.cli import terminal as console
from hetero_bfs.cli.arguments import make_parser
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.selection.strategies import check_aim
from hetero_bfs.support import environment
from hetero_bfs.support.wording import naming_options

if TYPE_CHECKING:
    from hetero_bfs.algorithms.bfs.result import BFSResult
    from hetero_bfs.runtime.engine import Engine
    from hetero_bfs.runtime.options import EngineOptions


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    with console.outputs() as (out, _), console.interruptible():
        status = _run(arguments)
        out.flush()
        if out.failure is not None and not isinstance(out.failure, BrokenPipeError):
            reason = getattr(out.failure, "strerror", None) or out.failure
            print(f"hetero-bfs: standard output: {reason}", file=sys.stderr)
        return status or (1 if out.failure is not None else 0)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        with naming_options():
            options = _parse(arguments)
            _prepare(options)
            status: int = options.run(options)
            return status
    except SystemExit as stop:  # argparse has said what
        return int(stop.code or 0)
    except HeteroBFSError as error:
        print(f"hetero-bfs: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print(
            "hetero-bfs: out of memory; choose a smaller graph or free some memory",
            file=sys.stderr,
        )
        return 1
    except ImportError as error:
        print(f"hetero-bfs: {environment.cannot_load(error)}", file=sys.stderr)
        return 1
    except OSError as error:
        if isinstance(error, FileNotFoundError) and error.filename is None:  # os.getcwd()
            print("hetero-bfs: the current folder is gone; cd to another", file=sys.stderr)
            return 1
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"hetero-bfs: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # in a program that calls main() and handles Ctrl-C itself
        print("\nhetero-bfs: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return options that go together; exits with status 2 where they do not."""
    from hetero_bfs import __version__

    parser = make_parser(
        __version__,
        {
            "graph500": _graph500,
            "bfs": _bfs,
            "train": _train,
            "study": _study,
            "devices": _devices,
            "convert": _convert,
        },
    )
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        parser.exit(2)
    try:
        _check_agreement(options)
    except HeteroBFSError as error:
        parser.error(str(error))
    if getattr(options, "directed", False) and not getattr(options, "graph", True):
        parser.error("--directed goes with --graph FILE; generated graphs are undirected")
    if options.command == "graph500" and options.graph is not None:
        for name in ("regenerate", "scale", "edgefactor"):
            if getattr(options, name):
                parser.error(f"--{name} goes with generated graphs, not with --graph FILE")
    if options.command == "train" and options.power_only and options.out is not None:
        parser.error("--power-only adds to the installed model; --out DIR goes with training")
    if (
        options.command == "train"
        and options.calibrate
        and (options.power_only or options.power_log)
    ):
        parser.error("--calibrate measures no watts; add them with --power-only afterwards")
    if options.command == "train" and options.source is not None and not options.calibrate:
        parser.error("--from names the model that --calibrate starts from")
    return options


def _check_agreement(options: argparse.Namespace) -> None:
    """Check that an engine's settings go together, which `EngineOptions` does as well."""
    if getattr(options, "device", None) is not None:
        from hetero_bfs.devices.opencl.driver import check_device_agrees

        check_device_agrees(options.device, options.devices)
    if hasattr(options, "optimize"):
        check_aim(options.selector, options.optimize)


def _prepare(options: argparse.Namespace) -> None:
    """Check what can be checked before any work, and set up progress bars and threads."""
    from hetero_bfs.support import progress

    _check_files(options)
    environment.check()
    if getattr(options, "device", None) is not None and options.devices == "all":
        from hetero_bfs.devices.opencl.driver import choose_device

        choose_device(options.device)

    if getattr(options, "optimize", "time") != "time":
        _check_aim(options)
    progress.enabled = True
    if getattr(options, "threads", None) is not None:
        import numba

        from hetero_bfs.algorithms.bfs.cpu_executor import check_threads

        numba.set_num_threads(check_threads(options.threads))


def _check_files(options: argparse.Namespace) -> None:
    """Check that every output can be written, and destroys neither another one nor the input."""
    from hetero_bfs.support.files import check_writable

    if options.command == "train":
        return  # whose --out is a folder
    taken: dict[str, str] = {}
    for name in ("graph", "input", "power_log"):
        given = getattr(options, name, None)
        for path in given if isinstance(given, list) else [given]:
            if path is not None:
                taken[os.path.realpath(path)] = "an input"
    for name in ("output", "out", "levels", "trace", "json"):
        path = getattr(options, name, None)
        option = "OUT" if name == "output" else f"--{name}"
        if path is None:
            continue
        if str(path) == "-":
            if name != "json":
                raise HeteroBFSError(f"{option} -: only --json knows standard output; name a file")
            if getattr(sys.stdout, "closed_before", False):
                raise HeteroBFSError("--json -: standard output is closed; name a file")
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise HeteroBFSError(f"{option} {path} is {taken[place]}, too; name another file")
        taken[place] = f"{option}'s file"
        folder = getattr(options, "out_dir", None)
        if folder is not None and Path(os.path.realpath(folder)) in Path(place).parents:
            raise HeteroBFSError(
                f"{option} {path} is in OUT_DIR, which holds a study and nothing else; name a file "
                "beside it"
            )
        check_writable(path)


def _check_aim(options: argparse.Namespace) -> None:
    """Find out whether the aim's watts are known, which need not wait for a graph."""
    from hetero_bfs.devices.opencl.driver import choose_device
    from hetero_bfs.errors import DeviceError
    from hetero_bfs.selection.by_objective import make_aiming
    from hetero_bfs.selection.strategies import available

    device = None
    if options.devices == "all":
        with suppress(DeviceError):  # one asked for by name was found before
            device = choose_device(options.device)
    _load_numba()
    make_aiming("learned", device, available(device is not None), False, options.optimize)


def _graph500(options: argparse.Namespace) -> int:
    from hetero_bfs.graph500.protocol import Graph500Options, run_graph500
    from hetero_bfs.graph500.report import format_report
    from hetero_bfs.selection.trace import write_csv

    _load_numba()
    report = run_graph500(
        Graph500Options(
            scale=options.scale or Graph500Options.scale,
            edgefactor=options.edgefactor or Graph500Options.edgefactor,
            roots=options.roots,
            seed1=options.seed1,
            seed2=options.seed2,
            graph=options.graph,
            directed=options.directed,
            regenerate=options.regenerate,
            validate=options.validate,
            power_log=options.power_log,
            engine=_engine_options(options),
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

    from hetero_bfs.graph.csr import check_vertex
    from hetero_bfs.graph.io.registry import vertices_by_header

    named = vertices_by_header(options.graph)
    if named is not None:  # a wrong source is found before anything is compiled
        check_vertex(options.source, named)
    from hetero_bfs.algorithms.bfs.validate import raise_if_invalid, validate
    from hetero_bfs.graph.io.registry import read
    from hetero_bfs.runtime.engine import Engine
    from hetero_bfs.selection.trace import format_levels
    from hetero_bfs.support.files import replacing

    _load_numba()
    edges = read(options.graph, options.directed)
    check_vertex(options.source, edges.num_vertices)
    with Engine(edges, **_engine_options(options).settings()) as engine:
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
        "optimize": _aim_figures(engine, result),
        "corrections": engine.corrections,
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
    rule = result.rule and f" ({result.rule})"
    print(f"selector {engine.selector.name}{rule}, device {name}", file=text)
    if engine.objective is not None:
        figures = summary["optimize"]
        print(
            f"aim: least {engine.objective}\n{1e3 * figures['model_joules']:.4g} mJ by these watts,"
            f" {1e3 * figures['model_net_joules']:.4g} above idle",
            file=text,
        )
    if options.verbose:
        print(format_levels(result.traces), file=text)
    _write_json(options.json, summary)
    return 0


def _aim_figures(engine: Engine, result: BFSResult) -> dict[str, Any]:
    """Return the aim, and what the search took by the model's watts."""
    objective = engine.objective
    if objective is None:
        return {"aim": "time"}
    return objective.to_dict() | {
        "model_joules": objective.joules(result.traces),
        "model_net_joules": objective.net_joules(result.traces),
    }


def _convert(options: argparse.Namespace) -> int:
    from hetero_bfs.graph.io.registry import read, write

    _load_numba()
    graph = read(options.input, options.directed)
    write(graph, options.output)
    print(
        f"{options.output}: {graph.num_vertices} vertices, {graph.num_input_edges} input edges, "
        f"{options.output.stat().st_size} bytes"
    )
    return 0


def _devices(options: argparse.Namespace) -> int:
    from hetero_bfs.devices.machine import cpu_name, usable_cores
    from hetero_bfs.devices.opencl.driver import NO_RUNTIME, choose_device, list_devices

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
    from hetero_bfs.training import run_calibration, run_power_training, run_training

    _load_numba()
    engine = _engine_options(options)
    if options.power_only:
        return int(run_power_training(options.quick, engine, options.power_log))
    if options.calibrate:
        return int(run_calibration(engine, options.out, options.source))
    return int(run_training(options.quick, engine, options.out, options.power_log))


def _study(options: argparse.Namespace) -> int:
    from hetero_bfs.study import StudyOptions, run_study

    _load_numba()
    summary = run_study(
        options.out_dir,
        StudyOptions(
            scales=tuple(options.scale),
            graphs=tuple(options.graph),
            directed=options.directed,
            families=options.families
            if options.families is not None
            else not (options.scale or options.graph),
            keys=options.keys,
            rounds=options.rounds,
            quick=options.quick,
            engine=_engine_options(options),
            power_log=options.power_log,
        ),
    )
    _print_notes(summary["notes"])
    text = _text_stream(options)
    for name, finding in summary["findings"].items():
        print(f"{name + ':':<13}{finding}", file=text)
    print(f"the page is {options.out_dir / 'index.html'}", file=text)
    _write_json(options.json, summary)
    return 0


def _engine_options(options: argparse.Namespace) -> EngineOptions:
    """Return the engine's settings that a command takes: its options have their names."""
    from hetero_bfs.runtime.options import EngineOptions

    known = EngineOptions.__dataclass_fields__
    return EngineOptions(**{name: v for name, v in vars(options).items() if name in known})


def _text_stream(options: argparse.Namespace) -> TextIO:
    """Return where text goes: not between the JSON when that goes to standard output."""
    return sys.stderr if str(options.json) == "-" else sys.stdout


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


@cache
def _load_numba() -> None:
    """Load Numba as commands need it; have it tell on stderr, once, when it compiles."""
    environment.import_numba()
    from hetero_bfs.cli.announcer import announce
    from hetero_bfs.support import code_cache

    code_cache.tell = lambda text: print(f"note: {text}", file=sys.stderr)
    announce()


def _write_json(path: Path | None, data: Any) -> None:
    """Write JSON to a file, "-" being standard output."""
    if path is None:
        return
    text = json.dumps(data, indent=1, allow_nan=False)
    if str(path) == "-":
        print(text)
        return
    from hetero_bfs.support.files import replacing

    with replacing(path) as stream:
        stream.write(text + "\n")
