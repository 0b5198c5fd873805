"""Names of settings in messages: Python arguments, or options on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_OPTIONS = {
    "alpha": "--alpha",
    "decision_interval": "--decision-interval",
    "depth_limit": "--depth-limit",
    "device": "--device",
    "device_memory_bytes": "--device-memory",
    "directed": "--directed",
    "edgefactor": "--edgefactor",
    "graphs": "--graph",
    "max_alloc_bytes": "--max-alloc",
    "mask": "--mask",
    "max_iter": "--max-iter",
    "optimize": "--optimize",
    "order": "--order",
    "scale": "--scale",
    "selector": "--selector",
    "threads": "--threads",
    "tol": "--tol",
    "weighted": "--weighted",
}
"""The option for each argument that a message names."""

_as_options: ContextVar[bool] = ContextVar("hetero_bfs_names_options", default=False)


@contextmanager
def naming_options() -> Iterator[None]:
    """Within this context, name settings as the command line's options."""
    token = _as_options.set(True)
    try:
        yield
    finally:
        _as_options.reset(token)


def number_of(count: int, noun: str) -> str:
    """Return "1 window", "2 windows" and so on."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun.removesuffix('ex')}ices" if noun.endswith("ex") else f"{count} {noun}s"


def setting(name: str, value: object = None) -> str:
    """Name an argument, with its value if one is given: device='0', or --device 0."""
    if _as_options.get() and name in _OPTIONS:
        return _OPTIONS[name] if value is None else f"{_OPTIONS[name]} {value}"
    return name if value is None else f"{name}={value!r}"
