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

    A stream that is closed from the start is silent, and `closed_before`. What its encoding lacks,
    such as a micro sign in ASCII, is written as an escape.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.closed_before = stream is None or stream.closed
        self.failure: Exception | None = None
        if stream is None or self.closed_before:
            stream = open(os.devnull, "w")  # noqa: SIM115
        self._stream = stream
        self._errors = stream.errors
        self._set_errors("backslashreplace")

    def write(self, text: str) -> int:
        """Write, or not; returns the text's length."""
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Pass on what is written."""
        self._attempt(self._stream.flush)

    def end(self) -> None:
        """Leave the stream as it was."""
        self.flush()
        if self.closed_before:
            self._stream.close()
        elif not self._stream.closed:
            self._set_errors(self._errors)

    def _set_errors(self, errors: str | None) -> None:
        if isinstance(self._stream, io.TextIOWrapper):
            self._stream.reconfigure(errors=errors)

    def _attempt(self, action: Callable[[], object]) -> None:
        if self.failure is not None:
            return
        try:
            action()
        except (OSError, ValueError) as error:
            if isinstance(error, ValueError) and not self._stream.closed:
                raise
            self.failure = error
            with suppress(OSError, ValueError, AttributeError):
                self._drop_what_waits(self._stream.fileno())

    def _drop_what_waits(self, descriptor: int) -> None:
        """Write to nowhere what the stream holds back: Python would try again at its end."""
        before, nowhere = os.dup(descriptor), os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, descriptor)
            self._stream.flush()
        finally:
            os.dup2(before, descriptor)
            os.close(before)
            os.close(nowhere)

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
        sys.stdout, sys.stderr = before
        out.end()
        err.end()


class Stopped(KeyboardInterrupt):
    """A signal asks to stop."""

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
    dropped: list[int] = []
    timers: list[threading.Timer] = []

    def stop(number: int, _: Any) -> None:
        raise Stopped(number)

    def unraisable(problem: Any) -> None:
        if not issubclass(problem.exc_type, KeyboardInterrupt):
            hook_before(problem)
            return
        dropped.append(getattr(problem.exc_value, "number", signal.SIGINT))
        timers.append(threading.Timer(_AGAIN_SECONDS, _thread.interrupt_main, dropped[-1:]))
        timers[-1].start()

    hook_before = sys.unraisablehook
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    mine = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    try:
        sys.unraisablehook = unraisable
        for number in mine:
            signal.signal(number, stop)
        yield
    except Exception:
        if dropped:
            raise Stopped(dropped[-1]) from None
        raise
    finally:
        for timer in timers:
            timer.cancel()
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
        sys.unraisablehook = hook_before
