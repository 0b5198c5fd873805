"""The command line: parse arguments, run a command. Exit status 0 done, 1 failure, 2 usage."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from hetero_bfs import __version__
from hetero_bfs.algorithms import table
from hetero_bfs.cli import commands, output, terminal
from hetero_bfs.cli.argument_groups import MAX_VERTEX, Argument, VertexName, option_of
from hetero_bfs.cli.arguments import make_parser, option_names
from hetero_bfs.cli.graph_arguments import FAMILIES
from hetero_bfs.cli.output import open_files
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.graph.io.formats import BY_SUFFIX
from hetero_bfs.study import TAKES
from hetero_bfs.support import environment
from hetero_bfs.support.environment import launched_rank, launched_ranks
from hetero_bfs.support.messages import naming_options


def outputs(command: str) -> list[str]:
    row = table.commands().get(command)
    arrays = ["output", "out", "edges_out"] if row is None else [*row.outputs]
    return [*arrays, "trace", "json"]


def prepare(options: Namespace) -> None:
    """Run the checks that come before any work; set up progress bars and threads."""
    from hetero_bfs.support import messages, private_cache

    _check_files(options)
    messages.enabled = True
    environment.wait_for_compiling()
    if options.command in ("completion", "doctor"):
        return  # the doctor reports problems of the environment itself
    private_cache.warn = lambda text: print(f"note: {text}", file=sys.stderr)
    environment.check()
    if options.command != "warm-up" and getattr(options, "device", None) is not None:
        load_numba()  # so that a driver that hangs can be interrupted
        _check_device(options)
    if launched_rank() == 0:
        open_files(options)
    if getattr(options, "threads", None) is not None:
        load_numba()
        import numba

        from hetero_bfs.devices.cpu.host_run import check_threads

        numba.set_num_threads(check_threads(options.threads))


def _check_device(options: Namespace) -> None:
    from hetero_bfs.devices.opencl.driver import choose_devices, plain_device_name
    from hetero_bfs.scheduling.strategies import MOST_DEVICES

    if plain_device_name(options.device) is None:
        return
    most = 1 if options.command in ("train", "study") else MOST_DEVICES
    if launched_ranks() > 1:
        most = options.device.count(",") + 1  # each rank takes one of them
    choose_devices(options.device, most)


def _check_files(options: Namespace) -> None:
    """Check that every output can be written and overwrites neither another output nor an input."""
    from hetero_bfs.support.files import check_writable

    if options.command == "train":
        return  # its --out is a folder
    taken: dict[str, str] = {}
    for name in ("graph", "input", "power_log", "program_file", "argument", "mask", "start"):
        given = getattr(options, name, None)
        for path in given if isinstance(given, list) else [given]:
            path = path.value if isinstance(path, Argument) else path
            if path is not None and not isinstance(path, int | float):
                taken[os.path.realpath(path)] = "an input"
    for name in outputs(options.command):
        path = getattr(options, name, None)
        option = "OUT" if name == "output" else f"--{name.replace('_', '-')}"
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
                "outside"
            )
        check_writable(path)
        is_values = name in ("out", "edges_out", "levels", "parents")
        if is_values and options.command != "layers":
            _check_format(option, path)


def _check_format(option: str, path: Path) -> None:
    """Check the suffix of a file for values of vertices or edges."""
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".csv", ".npz", ".parquet"):
        raise HeteroBFSError(f"{option} {path}: its name must end in .npy, .csv, .npz or .parquet")
    if suffix == ".parquet":
        from hetero_bfs.graph.io.table_files import import_arrow

        import_arrow(path)


def load_numba() -> None:
    environment.import_numba()
    terminal.end_even_if_stuck()


_WITHOUT_NUMBA = ("completion", "devices", "doctor", "warm-up")
"""Commands that compile nothing in this process."""


def main(arguments: Sequence[str] | None = None) -> int:
    with terminal.outputs() as (out, _), terminal.interruptible():
        status = _run(arguments)
        out.flush()
        if out.failure is not None and not isinstance(out.failure, BrokenPipeError):
            reason = getattr(out.failure, "strerror", None) or out.failure
            print(f"hetero-bfs: standard output: {reason}", file=sys.stderr)
        return status or (1 if out.failure is not None else 0)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        parser = make_parser(__version__)
        with naming_options(option_names(parser)):
            with output.one_voice():
                options = _parse(parser, arguments)
            output.check_command(options)
            output.agreed_by_all(lambda: prepare(options))
            return _carry_out(options)
    except SystemExit as stop:  # argparse has printed a message
        return int(stop.code or 0)
    except HeteroBFSError as error:
        if output.says(error):
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
    except Exception as error:  # a bug in this program or in a package that it uses
        print(f"hetero-bfs: {terminal.mistake(error)}", file=sys.stderr)
        return 1


def _carry_out(options: argparse.Namespace) -> int:
    if options.command not in _WITHOUT_NUMBA:
        load_numba()
    name = "algorithms" if options.command in table.commands() else options.command
    if name in ("algorithms", "info", "layers", "run"):
        module = {"run": "program_run", "layers": "info"}.get(name, name)
        entry = "layers" if name == "layers" else "run"
        run = getattr(import_module(f"hetero_bfs.cli.{module}"), entry)
    else:
        run = getattr(commands, name.replace("-", "_"))
    status: int = run(options)
    return status


def _parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        parser.exit(2)
    if getattr(options, "directed", False) and not getattr(options, "graph", True):
        parser.error("--directed goes with --graph FILE; generated graphs are undirected")
    _check_vertices(parser, options)
    if options.command == "bfs" and options.reverse and not options.directed:
        parser.error("--reverse goes with --directed; undirected edges have no other direction")
    if options.command == "graph500" and options.graph is not None:
        for name in ("regenerate", "scale", "edgefactor"):
            if getattr(options, name):
                parser.error(f"--{name} goes with generated graphs, not with --graph FILE")
    if options.command == "graph500" and options.kernel == "sssp":
        for option, given in _only_for_bfs(options).items():
            if given:
                parser.error(f"{option} goes with --kernel bfs; shortest paths have no selector")
    if options.command == "study":
        _check_study(parser, options)
    if options.command == "generate":
        _check_family(parser, options)
    return options


def _check_study(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.paper is None and options.out_dir is None:
        parser.error("name OUT_DIR, the folder for the study; only --paper goes without")
    if options.paper is None and options.regenerate:
        parser.error("--regenerate goes with --paper zhang; other studies hold the edges")
    if options.paper is None:
        return
    for name in ("graph", "directed", "families", "keys", "regenerate", "power_log", "budget"):
        if getattr(options, name) and name not in TAKES[options.paper]:
            option = f"--{name.replace('_', '-')}"
            parser.error(f"the study of --paper {options.paper} has no {option}; leave it out")


def _check_vertices(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse names of vertices for a graph of a format without them, before it is opened."""
    sources = getattr(options, "source", None)
    given = [
        *(sources if isinstance(sources, list) else [sources]),
        *(getattr(options, name, None) for name in ("target", "root")),
        *(argument.value for argument in getattr(options, "vertex", ())),
    ]
    wrong = [
        one
        for one in given
        if isinstance(one, VertexName) or (one is not None and not 0 <= one <= MAX_VERTEX)
    ]
    if wrong and not options.renumber:
        suffix = (options.format or options.graph.suffix).lower()
        row = BY_SUFFIX.get(f".{suffix.lstrip('.')}")
        if row is not None and row.named is None:
            parser.error(
                f"{str(wrong[0])!r} is not a vertex id; ids are 0 to {MAX_VERTEX}, others and "
                "names need --renumber"
            )


def _check_family(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    known = FAMILIES[options.family]
    for name in sorted({name for names in FAMILIES.values() for name in names} - {*known}):
        given = getattr(options, name)
        if given is not None and given is not False:  # 0 is given, too
            parser.error(
                f"{option_of(name)} is not an option of {options.family}, which has "
                f"{', '.join(option_of(one) for one in known)}"
            )


def _only_for_bfs(options: argparse.Namespace) -> dict[str, bool]:
    return {
        "--selector": options.selector != "auto",
        "--decision-interval": options.decision_interval != 1,
        "--no-correction": not options.correction,
    }
