"""Standard streams that may fail, and signals that stop the command line."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TextIO, cast

from hetero_bfs.support.files import discard_temporaries

_CLEANING_SECONDS = 1.0
_ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
_USUAL = signal.SIG_DFL, signal.default_int_handler


class Output:
    """A standard stream that becomes silent after its first failure, so that no work is lost.

    A stream that was closed from the start is silent, and `closed_before` is true. Characters that
    its encoding lacks, such as a micro sign in ASCII, are written as escapes.
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
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def end(self) -> None:
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
        """Discard the stream's buffer; otherwise Python would try to write it again at exit."""
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


def mistake(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())
    return (
        f"internal error: {type(error).__name__}: {text} ({last.filename}, line {last.lineno}); "
        "please report this line with the command"
    )


@contextmanager
def outputs() -> Iterator[tuple[Output, Output]]:
    before = sys.stdout, sys.stderr
    out, err = Output(sys.stdout), Output(sys.stderr)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
    try:
        yield out, err
    finally:
        sys.stdout, sys.stderr = before
        out.end()
        err.end()


_SAID = b"\nhetero-bfs: interrupted\n"
_to_watcher: tuple[int, list[signal.Signals], ExitStack] | None = None
"""The pipe end that the watcher's signals are written to, the signals that end the process, and a
stack that closes with `interruptible`.
"""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP end the process cleanly, with one line of output.

    The handlers raise no exception: within LLVM, a driver or an import it might get lost or cause a
    crash, and it would wait for the end of a long compiled loop. The handlers do nothing. Python's
    wakeup descriptor writes the signal's number to a pipe. A thread reads the pipe, removes
    temporary files and ends the process.
    """
    global _to_watcher
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in _ENDING if signal.getsignal(number) in _USUAL]
    before = [(number, signal.getsignal(number)) for number in numbers]
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    watcher = threading.Thread(target=_watch, args=(reading, numbers), daemon=True)
    watcher.start()
    wakeup_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        for number in numbers:
            signal.signal(number, lambda *_: None)
        with ExitStack() as guard:
            _to_watcher = writing, numbers, guard
            yield
    finally:
        _to_watcher = None
        for number, handler in before:
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup_before)
        os.close(writing)
        watcher.join()  # ends the process if a signal came
        os.close(reading)


def end_even_if_stuck() -> None:
    """Within `interruptible`: end the process even while a driver hangs and holds Python's lock.

    The watcher thread cannot run then. Compiled code, which needs no lock, therefore reads the
    signals first and passes them on to the watcher. Imports Numba.
    """
    global _to_watcher
    if _to_watcher is None or threading.current_thread() is not threading.main_thread():
        return
    import numpy as np

    from hetero_bfs.cli.with_numba import pass_on

    (writing, numbers, guard), _to_watcher = _to_watcher, None
    reading, signalled = os.pipe()
    os.set_blocking(signalled, False)
    mask, patience = sum(1 << number for number in numbers), int(2e6 * _CLEANING_SECONDS)
    words = np.zeros(1, np.uint8), np.frombuffer(_SAID, np.uint8)
    with open(os.devnull) as nothing:
        pass_on(nothing.fileno(), writing, mask, patience, *words)  # compiles it in this thread
    guard.callback(os.close, reading)
    thread = threading.Thread(
        target=pass_on, args=(reading, writing, mask, patience, *words), daemon=True
    )
    thread.start()
    guard.callback(thread.join)
    guard.callback(os.close, signalled)
    guard.callback(signal.set_wakeup_fd, writing, warn_on_full_buffer=False)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Within `interruptible`: let the system end the process at a signal, without cleaning up.

    This works while a driver hangs and holds Python's lock, and it needs no Numba.
    """
    is_main = threading.current_thread() is threading.main_thread()
    numbers = _to_watcher[1] if _to_watcher is not None and is_main else []
    before = [(number, signal.signal(number, signal.SIG_DFL)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _watch(reading: int, numbers: list[signal.Signals]) -> None:
    while came := os.read(reading, 1):
        if came[0] in numbers:
            _end(128 + came[0])


def _end(status: int) -> None:
    with suppress(RuntimeError):  # no thread could be started
        last = threading.Timer(_CLEANING_SECONDS, os._exit, [status])
        last.daemon = True
        last.start()
    discard_temporaries()
    sys.stdout.flush()
    with suppress(OSError):
        os.write(2, _SAID)
    os._exit(status)
