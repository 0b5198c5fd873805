"""Messages: names of settings in them, and progress bars.

Settings are named as Python arguments, or as options on the command line. Progress bars are shown
on standard error, only by the command line and only after one second.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

_options: ContextVar[Mapping[str, str] | None] = ContextVar("hetero_bfs_options", default=None)


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    token = _options.set(options)
    try:
        yield
    finally:
        _options.reset(token)


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun: "1 window", "2 windows"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun.removesuffix('ex')}ices" if noun.endswith("ex") else f"{count} {noun}s"


def shown(value: object, most: int = 60) -> str:
    """Return a value in one short line."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python does not format integers of more than 4300 digits
        return f"a huge {type(value).__name__}"
    return text if len(text) <= most else f"{text[:most]}..."


def setting(name: str, value: object = None) -> str:
    option = (_options.get() or {}).get(name)
    if option is not None:
        return option if value is None else f"{option} {value}"
    return name if value is None else f"{name}={value!r}"


enabled = False
"""Set by the command line; a library call stays silent."""

T = TypeVar("T")


def announce(text: str) -> None:
    if enabled:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def hidden() -> Iterator[None]:
    global enabled
    before, enabled = enabled, False
    try:
        yield
    finally:
        enabled = before


def progress(
    items: Iterable[T],
    description: str,
    total: int | None = None,
    delay_seconds: float = 1.0,
    costs: Sequence[float] = (),
    end: float | None = None,
) -> Iterator[T]:
    """Draw a bar after `delay_seconds` if stderr is a terminal, else print a line now and then.

    `costs` are expected seconds of all items, or a multiple of them, if they differ much. They also
    say how many items there are. Lines show at most the seconds until `end`, by
    `time.monotonic`.
    """
    total = total or len(costs) or None
    if not enabled:
        yield from items
        return
    if not sys.stderr.isatty():
        yield from _with_lines(items, description, costs or [1.0] * (total or 0), end)
        return
    from tqdm import tqdm

    yield from tqdm(
        items,
        desc=description,
        total=total,
        delay=delay_seconds,
        file=sys.stderr,
        leave=False,
    )


LINE_SECONDS = 10.0
"""Least seconds between two lines of progress without a terminal."""

_TICK_SECONDS = 2.0


def _with_lines(
    items: Iterable[T], description: str, costs: Sequence[float], end: float | None
) -> Iterator[T]:
    """Print what is done, and how long the rest takes if it takes as long for its costs.

    A thread prints while an item takes long.
    """
    began = at = printed = time.monotonic()  # `at`: the start of the item that runs
    step = "" if end is None else " of this step"
    number, has_ended = 0, threading.Event()

    def tell() -> None:
        nonlocal printed
        now = time.monotonic()
        if now - printed < LINE_SECONDS:
            return
        printed = now
        of = f" of {len(costs)}" if costs else ""
        done = sum(costs[:number])
        left = (at - began) / done * sum(costs[number:]) if done else math.inf
        left = max(left - (now - at), 0.0)
        left = min(left, math.inf if end is None else max(end - now, 0.0))
        rest = f", about {left:.0f} s left{step}" if left < math.inf else ""
        announce(f"{description}: {number}{of} done{rest}")

    def tick() -> None:
        while not has_ended.wait(_TICK_SECONDS):
            tell()

    with suppress(RuntimeError):  # no thread could be started
        threading.Thread(target=tick, daemon=True).start()
    try:
        for count, item in enumerate(items):
            number, at = count, time.monotonic()
            tell()
            yield item
    finally:
        has_ended.set()
