"""Standard streams that may fail, and requests to stop, as the command line takes them."""

from __future__ import annotations

import _thread
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

_AGAIN_SECONDS = 0.1


class Output:
    """A standard stream that is silent after it failed once, so that no work is lost with it.

    Where a stream is closed from the start Python has none: it is silent, and `closed_before`.
    What its encoding lacks, such as a micro sign in ASCII, is written as an escape.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.closed_before = stream is None
        self.failure: OSError | None = None
        self._stream = open(os.devnull, "w") if stream is None else stream  # noqa: SIM115
        if isinstance(self._stream, io.TextIOWrapper):
            self._stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write, or not; returns the text's length."""
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Pass on what is written."""
        self._attempt(self._stream.flush)

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as error:
            self.failure = self.failure or error
            with suppress(OSError):  # what waits to be written is tried again at the end
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, self._stream.fileno())
                os.close(nothing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def outputs() -> Iterator[tuple[Output, Output]]:
    """Let standard output and error be such streams for a while."""
    before = sys.stdout, sys.stderr
    out, err = Output(sys.stdout), Output(sys.stderr)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
    try:
        yield out, err
    finally:
        out.flush()
        err.flush()
        sys.stdout, sys.stderr = before


class Stopped(KeyboardInterrupt):
    """A signal other than Ctrl-C's asks to stop."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def interruptible() -> Iterator[None]:
    """Stop by SIGTERM and SIGHUP as by Ctrl-C: exceptions, so that temporary files go.

    While Numba compiles, LLVM calls Python back, and an exception there goes nowhere: it is raised
    again a little later, and whatever fails in between counts as being stopped.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    dropped: list[threading.Timer] = []

    def stop(number: int, _: Any) -> None:
        raise Stopped(number)

    def unraisable(problem: Any) -> None:
        if not issubclass(problem.exc_type, KeyboardInterrupt):
            hook_before(problem)
            return
        number = getattr(problem.exc_value, "number", signal.SIGINT)
        dropped.append(threading.Timer(_AGAIN_SECONDS, _thread.interrupt_main, [number]))
        dropped[-1].start()

    hook_before = sys.unraisablehook
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    mine = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    sys.unraisablehook = unraisable
    for number in mine:
        signal.signal(number, stop)
    try:
        yield
    except Exception:
        if dropped:
            raise KeyboardInterrupt from None
        raise
    finally:
        for timer in dropped:
            timer.cancel()
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
        sys.unraisablehook = hook_before
