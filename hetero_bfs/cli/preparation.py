"""Preparation of a command: checks before any work, and the import of Numba."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import suppress
from functools import cache
from pathlib import Path

from hetero_bfs.algorithms.table import commands
from hetero_bfs.cli import terminal
from hetero_bfs.errors import DeviceError, HeteroBFSError
from hetero_bfs.support import environment
from hetero_bfs.support.environment import launched_rank, launched_ranks


def outputs(command: str) -> list[str]:
    """Return the arguments that name files to write."""
    row = commands().get(command)
    arrays = ["output", "out", "levels"] if row is None else [*row.outputs]
    return [*arrays, "trace", "json"]


def prepare(options: Namespace) -> None:
    """Run the checks that come before any work; set up progress bars and threads."""
    from hetero_bfs.support import messages, private_cache

    _check_files(options)
    messages.enabled = True
    if options.command in ("completion", "doctor"):
        return  # the doctor reports problems of the environment itself
    private_cache.warn = lambda text: print(f"note: {text}", file=sys.stderr)
    environment.check()
    if getattr(options, "device", None) is not None:
        load_numba()  # so that a driver that hangs can be interrupted
        _check_device(options)
    if getattr(options, "optimize", "time") != "time":
        load_numba()  # so that a driver that hangs can be interrupted
        _check_objective(options)
    _tell_of_ids(options)
    if getattr(options, "threads", None) is not None:
        load_numba()
        import numba

        from hetero_bfs.devices.cpu.host_run import check_threads

        numba.set_num_threads(check_threads(options.threads))


def _tell_of_ids(options: Namespace) -> None:
    """Print a note for each graph file whose vertices get other ids than in the file."""
    if launched_rank() > 0 or options.command == "view":
        return
    from hetero_bfs.graph.io.registry import header_note

    for name in ("graph", "input"):
        given = getattr(options, name, None) or []
        for path in given if isinstance(given, list) else [given]:
            with suppress(HeteroBFSError):  # the command itself reports it
                note = header_note(path, getattr(options, "directed", False))
                if note is not None:
                    print(f"note: {path}: {note}", file=sys.stderr)


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
    for name in ("graph", "input", "power_log"):
        given = getattr(options, name, None)
        for path in given if isinstance(given, list) else [given]:
            if path is not None:
                taken[os.path.realpath(path)] = "an input"
    for name in outputs(options.command):
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


def _check_objective(options: Namespace) -> None:
    from hetero_bfs.devices.opencl.driver import choose_devices
    from hetero_bfs.scheduling.named_selectors import make_objective_selector
    from hetero_bfs.scheduling.strategies import MOST_DEVICES, available

    device = None
    with suppress(DeviceError, IndexError):  # a device given by name was checked before
        device = choose_devices(options.device, MOST_DEVICES)[0]
    make_objective_selector(
        "learned", device, available(device is not None), False, options.optimize
    )


def load_numba() -> None:
    """Import Numba; a line on stderr reports when it first compiles."""
    _load_numba()
    terminal.end_even_if_stuck()


@cache
def _load_numba() -> None:
    environment.import_numba()
    from hetero_bfs.cli.announcer import announce

    announce()
