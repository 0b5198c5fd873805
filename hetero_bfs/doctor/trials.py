"""Examines MPI, and searches a small graph, each in a process of its own: both may end it.

MPI is mpi4py, the library that it uses, and the launcher. The searches are validated: on the CPU,
then with default settings.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hetero_bfs.doctor import Finding
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.support.processes import run_main, run_module, say

MPI = "MPI"
_MPI_SECONDS = 60.0
_INSTALL = "pip install mpi4py mpich"
_LAUNCHERS = ("mpirun", "mpiexec", "srun")
_FAMILIES = {"MPICH": ("mpich", "hydra"), "Open MPI": ("open mpi", "open-mpi", "openrte", "prrte")}
"""Words in the names of libraries and launchers, by the MPI that they belong to."""


def check_mpi() -> Iterator[Finding]:
    answer = run_module(__name__, _MPI_SECONDS, MPI)
    library = next((line["library"] for line in answer.lines if "library" in line), None)
    if library is None:
        text = f"mpi4py cannot be loaded ({answer.problem}); one process only"
        yield Finding(MPI, "mpi4py", "missing", text, _INSTALL)
        return
    version = next(line["mpi4py"] for line in answer.lines if "mpi4py" in line)
    yield Finding(MPI, "mpi4py", "ok", f"{version}, with {library}")
    yield from _launchers(library)


def _launchers(library: str) -> Iterator[Finding]:
    found = {name: place for name in _LAUNCHERS if (place := shutil.which(name))}
    beside = shutil.which(_LAUNCHERS[0], path=str(Path(sys.executable).parent))
    if not found:
        remedy = f"start with {beside}" if beside else _INSTALL
        text = f"none of {', '.join(_LAUNCHERS)} is on the PATH"
        yield Finding(MPI, "launcher", "missing", text, remedy)
    wanted = family(library)
    for name, place in found.items():
        of = family(_version(place))
        if name == "srun" or None in (of, wanted) or of == wanted:
            yield Finding(MPI, name, "ok", f"{place}{'' if of is None else f', of {of}'}")
            continue
        text = f"{place} is of {of}, but mpi4py uses {wanted}: each process would be alone"
        fits = beside is not None and family(_version(beside)) == wanted
        remedy = f"start with {beside if fits else f'the mpirun of {wanted}'}"
        yield Finding(MPI, name, "failed", text, remedy)


def family(text: str) -> str | None:
    lower = text.lower()
    return next((of for of, words in _FAMILIES.items() if any(w in lower for w in words)), None)


def _version(launcher: str) -> str:
    try:
        done = subprocess.run(
            [launcher, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return done.stdout + done.stderr


def load_mpi() -> None:
    """Load MPI in this process: a wrong library may end it."""
    import mpi4py

    say(mpi4py=mpi4py.__version__)
    mpi4py.rc.initialize = False
    from mpi4py import MPI as library

    say(library=" ".join(library.Get_library_version().split("\n")[0].strip("\0 ").split()))


SEARCHES = "searches"
_SEARCHING_SECONDS = 600.0  # the first run on a slow machine compiles everything
_SCALE = 10


def check_searches() -> Iterator[Finding]:
    answer = run_module(__name__, _SEARCHING_SECONDS, SEARCHES)
    trials = {line["trial"]: line for line in answer.lines if "trial" in line}
    for name in ("CPU", "default"):
        result = trials.get(name, {"problem": f"it did not end: {answer.problem}"})
        yield _finding(name, result)
    for line in answer.lines:
        if "threading_layer" in line:
            text = f"{line['threading_layer']}, {line['threads']} threads"
            yield Finding(SEARCHES, "threading layer", "ok", text)


def _finding(name: str, result: dict[str, Any]) -> Finding:
    if result["problem"] is not None:
        remedy = "" if name == "CPU" else "search on the CPU: --device cpu"
        return Finding(SEARCHES, name, "failed", result["problem"], remedy, True)
    return Finding(SEARCHES, name, "ok", result["text"])


def search_small_graph() -> None:
    import numba

    import hetero_bfs as hb

    graph = hb.kronecker(_SCALE)
    for name, device in (("CPU", "cpu"), ("default", "auto")):
        try:
            text = _search(graph, device)
        except HeteroBFSError as error:
            say(trial=name, problem=str(error))
        else:
            say(trial=name, problem=None, text=text)
    say(threading_layer=numba.threading_layer(), threads=numba.get_num_threads())


def _search(graph: Any, device: Any) -> str:
    import hetero_bfs as hb

    with hb.Engine(graph, device=device) as engine:
        result = engine.bfs(1)
        where = "the CPU alone" if engine.device_info is None else engine.device_info.name
        outcome = hb.validate(graph, 1, result.parent, result.level)
        if not outcome.valid:
            raise HeteroBFSError(f"wrong result: {outcome.message}")
        return f"valid on {where}, selector {engine.selector.name}"


if __name__ == "__main__":
    run_main({MPI: load_mpi, SEARCHES: search_small_graph}[sys.argv[2]])
