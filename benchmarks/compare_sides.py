"""A side of compare.py in the parent process: a checkout and the worker that imports it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from hetero_bfs.errors import HeteroBFSError


class Side:
    """A checkout, and the worker process that imports it (compare_worker.py)."""

    def __init__(self, checkout: Path) -> None:
        if not (checkout / "hetero_bfs" / "__init__.py").is_file():
            raise HeteroBFSError(f"{checkout} is no checkout: it has no hetero_bfs/__init__.py")
        self.checkout = checkout.resolve()
        own = self.checkout / ".venv" / "bin" / "python"
        script = Path(__file__).with_name("compare_worker.py")
        self._process = subprocess.Popen(
            [own if own.is_file() else sys.executable, script, self.checkout],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # an interrupt is for the parent, which ends the workers
            # "active" threads of the waiting side would take the other side's cores.
            env={k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"},
        )

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # it holds nothing that must be saved
        self._process.communicate()

    def ask(self, do: str, **request: Any) -> Any:
        """Let the worker do something, and wait for its answer.

        Raises
        ------
        HeteroBFSError
            The worker cannot do it, or has ended.
        """
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        with suppress(BrokenPipeError):  # reading the answer then fails, too
            print(json.dumps({"do": do} | request), file=pipe_in, flush=True)
        line = pipe_out.readline()
        if not line:
            status = self._process.wait()
            raise HeteroBFSError(f"{self.checkout}: its worker ended with status {status} at {do}")
        answer = json.loads(line)
        if "error" in answer:
            raise HeteroBFSError(f"{self.checkout}: {answer['error']}")
        return answer["value"]

    def versions(self) -> str:
        """Name commit, Python and Numba.

        Raises
        ------
        HeteroBFSError
            The worker imported another package than the checkout's.
        """
        versions = self.ask("versions")
        if versions["package"] != str(self.checkout):
            raise HeteroBFSError(
                f"{self.checkout}: its worker imported {versions['package']} instead"
            )
        command = ["git", "-C", self.checkout, "describe", "--always", "--dirty", "--abbrev=12"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        commit = done.stdout.strip() or "not under git"
        return f"{commit}, Python {versions['python']}, Numba {versions['numba']}"
