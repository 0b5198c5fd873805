"""`hetero-bfs run`: a vertex program of a file on a graph file."""

from __future__ import annotations

import sys
import traceback
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy.typing as npt

from hetero_bfs.algorithms.base import open_analysis
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.algorithms.run_report import Report
from hetero_bfs.cli.algorithms import print_report, write_report
from hetero_bfs.cli.argument_groups import engine_options
from hetero_bfs.cli.info import range_of
from hetero_bfs.cli.output import (
    as_json,
    numbered,
    print_notes,
    read_graph,
    save_edges,
    save_values,
    write_trace,
)
from hetero_bfs.errors import ArgumentError, GraphFileError, HeteroBFSError, ProgramError
from hetero_bfs.graph.io.vertex_values import columns_of, read_values
from hetero_bfs.graph.vertex_names import name_of
from hetero_bfs.programs.options import RunOptions
from hetero_bfs.programs.plan import ProgramClass
from hetero_bfs.programs.program import Program
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.support.messages import number_of


def run(options: Namespace) -> int:
    program = load_program(options.program_file, options.program)
    known = ProgramClass(program)
    _check_options(options, known)
    edges = read_graph(options, options.graph, known.uses_weights)
    names = getattr(edges, "names", None)
    root = None if options.root is None else numbered(edges, [options.root])[0]
    if options.mode == "layered" and root is None:
        if getattr(edges, "layers", None) is None:
            directed = "" if options.directed else ", or --directed if a file of `layers` has it"
            raise ArgumentError(
                f"{options.graph}: mode layered finds no layers; give a root by --root V{directed}"
            )
        root = 0  # the vertex from which the file's layers begin
    run_options = RunOptions(
        options.max_iterations, mode=options.mode, root=root, num_classes=options.num_classes
    )
    shown, values = _values(options, edges, names)
    values |= _edge_fields(options, known)
    with open_analysis(ProgramRuns, edges, engine_options(options)) as analysis:
        run_options = replace(run_options, place=analysis.named_place or "auto")
        result = analysis.run(program, values, run_options)
        print_notes(analysis.notes)
        given = {"program": type(program).__name__, "arguments": shown, "mode": result.mode}
        report = ProgramReport(edges, result, given)
        report.note_runs(analysis)
    print_notes(report.notes())
    if options.out is not None:
        save_values(options.out, columns_of(result.state), names, ())
    if options.edges_out is not None:
        save_edges(options.edges_out, edges, result.edges)
    if options.trace is not None:
        write_trace(options.trace, (trace.row() for trace in result.traces))
    print_report(options, report)
    write_report(options, report)
    return 0


class ProgramReport(Report[ProgramResult]):
    """A program's run as the command writes and prints it. Nothing checks the result."""

    def notes(self) -> list[str]:
        if self.result.converged:
            return []
        count = number_of(self.result.iterations, "iteration")
        return [f"not converged after {count}; give a larger --max-iterations"]

    def figures(self) -> dict[str, Any]:
        totals = {name: as_json(total) for name, total in self.result.totals.items()}
        return {
            "iterations": self.result.iterations,  # more than the traces of a long run
            "fields": {name: range_of(values) for name, values in self.result.state.items()},
            "totals": totals,
            "converged": self.result.converged,
            "edges_scanned": self.result.edges_scanned,
        }

    def lines(self) -> list[str]:
        result, figures = self.result, self.figures()
        lines = [
            f"{name}: {one['dtype']}, {one['min']} to {one['max']}"
            for name, one in figures["fields"].items()
        ]
        lines += [f"total {name}: {total}" for name, total in figures["totals"].items()]
        count = number_of(result.iterations, "iteration")
        work = f"{number_of(result.edges_scanned, 'edge')} scanned"
        return [*lines, f"{self.arguments['program']}: {count}, mode {result.mode}, {work}"]


def _check_options(options: Namespace, known: ProgramClass) -> None:
    """Compare the options with the program, before the graph is read."""
    given = [one.name for one in (*options.argument, *options.vertex)]
    wanted, name = known.arguments, known.name
    if options.out is not None and "vertex" in known.program.state:
        raise ArgumentError(
            f"{name}.state: 'vertex' is the column of vertices that --out writes; rename it"
        )
    if options.edges_out is not None and not known.written_edges:
        raise ArgumentError(f"{name} has no method apply_edge; leave out --edges-out, or add it")
    for end in ("source", "target") if options.edges_out is not None else ():
        if end in known.edge_kinds:
            raise ArgumentError(
                f"{name}.edges: {end!r} is a column of vertices that --edges-out writes; rename it"
            )
    if known.edge_kinds and options.columns is None:
        raise ArgumentError(
            f"{name} reads columns of edges, {', '.join(known.edge_kinds)}; name the columns of "
            "their ends, too: --columns source,target"
        )
    known.check_end(options.max_iterations, "--max-iterations N")
    listed = f"its arguments are {', '.join(wanted)}" if wanted else "it has no arguments"
    for one in given:
        if one not in wanted:
            raise ArgumentError(f"{name} has no argument {one!r}; {listed}")
        if given.count(one) > 1:
            raise ArgumentError(f"argument {one} of {name} is given twice; leave one out")
    missing = [one for one in wanted if one not in given]
    if missing:
        raise ArgumentError(
            f"{name} needs the argument {missing[0]!r}; give --argument {missing[0]}=VALUE, or "
            f"--vertex {missing[0]}=V; {listed}"
        )


def _values(options: Namespace, edges: Any, names: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    shown: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, value in options.argument:
        if isinstance(value, Path):
            shown[name] = f"@{value}"
            values[name] = read_values(value, name, edges.num_vertices, names)
            continue
        shown[name], values[name] = as_json(value), value
        if names is None or type(value) is not int:
            continue
        if (names == (str(value) if names.dtype.kind == "O" else value)).any():
            print_notes([
                f"argument {name} is the number {value}; a vertex of that name is --vertex "
                f"{name}={value}"
            ])  # fmt: skip
    for name, vertex in options.vertex:
        (values[name],) = numbered(edges, [vertex])
        shown[name] = name_of(edges, values[name])
    return shown, values


def _edge_fields(options: Namespace, known: ProgramClass) -> dict[str, npt.NDArray[Any]]:
    from hetero_bfs.graph.csr import CSRGraph
    from hetero_bfs.graph.io.registry import read
    from hetero_bfs.graph.weights import needed_weights

    fields = {}
    for name, kind in known.edge_kinds.items():
        wanted = options.directed, True, options.renumber, (*options.columns.split(",")[:2], name)
        given = options.format if isinstance(options.graph, Path) else None
        edges = read(options.graph, *wanted, given)
        values = needed_weights(CSRGraph.from_edge_source(edges))
        converted = values.astype(kind)
        same = kind.startswith(("bool", "float")) or (converted == values).all()
        fields[name] = converted if same else values
    return fields


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
    """Return the program of a file: its only class derived from `hb.Program`, or the one named."""
    module = _module_of(path)
    found = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Program) and value is not Program
    }
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


def _listed(found: dict[str, Any]) -> str:
    return f"the programs {', '.join(found)}" if found else "no program"


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
