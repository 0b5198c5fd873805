"""Names of settings in messages: Python arguments, or options on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_options: ContextVar[Mapping[str, str] | None] = ContextVar("hetero_bfs_options", default=None)


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    """Name settings as the command line's options, which are given by argument."""
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
    """device='0', or --device 0 on the command line."""
    option = (_options.get() or {}).get(name)
    if option is not None:
        return option if value is None else f"{option} {value}"
    return name if value is None else f"{name}={value!r}"
