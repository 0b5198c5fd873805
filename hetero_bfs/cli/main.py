"""The command line: parse arguments, run a command. Exit status 0 done, 1 failure, 2 usage."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from hetero_bfs import __version__
from hetero_bfs.algorithms import table
from hetero_bfs.cli import commands, output, terminal
from hetero_bfs.cli.arguments import make_parser, option_names
from hetero_bfs.cli.preparation import load_numba, prepare
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.scheduling.strategies import check_objective
from hetero_bfs.support import environment
from hetero_bfs.support.messages import naming_options

_WITHOUT_NUMBA = ("completion", "devices", "doctor", "view")
"""Commands that compile nothing in this process."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status."""
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
    if name in ("algorithms", "bfs"):
        run = import_module(f"hetero_bfs.cli.{name}").run
    else:
        run = getattr(commands, name)
    status: int = run(options)
    return status


def _parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments; exit with status 2 if they contradict each other."""
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        parser.exit(2)
    try:
        if hasattr(options, "optimize"):
            check_objective(options.selector, options.optimize)
    except HeteroBFSError as error:
        parser.error(str(error))
    if getattr(options, "directed", False) and not getattr(options, "graph", True):
        parser.error("--directed goes with --graph FILE; generated graphs are undirected")
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


def _only_for_bfs(options: argparse.Namespace) -> dict[str, bool]:
    return {
        "--selector": options.selector != "auto",
        "--optimize": options.optimize != "time",
        "--decision-interval": options.decision_interval != 1,
        "--no-correction": not options.correction,
    }
