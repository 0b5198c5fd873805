"""New processes in which Numba is loaded already: they are forked from one that only loads it.

`run_program(text, folder, **variables)` runs a program in a folder, from which it also imports, and
takes a tenth of the time of a process that starts from nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path


def run_program(
    text: str, folder: Path, **variables: str | None
) -> subprocess.CompletedProcess[str]:
    """Run it to its end, in the present environment with these variables, or without if None."""
    environment = {k: v for k, v in {**os.environ, **variables}.items() if v is not None}
    asked = {"text": text, "folder": str(folder), "environment": environment}
    server = _server()
    server.stdin.write(json.dumps(asked) + "\n")
    server.stdin.flush()
    return subprocess.CompletedProcess("program.py", *json.loads(server.stdout.readline()))


@cache
def _server() -> subprocess.Popen[str]:
    """Start it, once; it ends with this process, which closes the pipe."""
    command = [sys.executable, __file__]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def _serve() -> None:
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    for line in sys.stdin:
        ends = [os.pipe() for _ in range(2)]
        child = os.fork()
        if child == 0:
            for number, (_, end) in enumerate(ends, 1):
                os.dup2(end, number)
            _run(**json.loads(line))
            return
        for _, end in ends:
            os.close(end)
        texts = [os.fdopen(end).read() for end, _ in ends]
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps((status, *texts)), flush=True)


def _run(text: str, folder: str, environment: dict[str, str]) -> None:
    import numba

    os.environ.clear()
    os.environ.update(environment)
    numba.config.reload_config()
    os.chdir(folder)
    sys.path[0] = folder
    (path := Path("program.py")).write_text(text)
    exec(compile(text, str(path.resolve()), "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    _serve()
