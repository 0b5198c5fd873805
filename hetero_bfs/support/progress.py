"""Progress bars on standard error, shown only by the command line and only after one second."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

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
    items: Iterable[T], description: str, total: int | None = None, delay_seconds: float = 1.0
) -> Iterator[T]:
    """Draw a bar after `delay_seconds` if stderr is a terminal."""
    if not enabled:
        yield from items
        return
    from tqdm import tqdm

    yield from tqdm(
        items,
        desc=description,
        total=total,
        delay=delay_seconds,
        file=sys.stderr,
        leave=False,
        disable=None,  # disabled if stderr is not a terminal
    )
