"""The engine's settings, from the options of a command."""

from __future__ import annotations

from argparse import Namespace

from hetero_bfs.options import EngineOptions


def engine_options(options: Namespace) -> EngineOptions:
    """Return the settings among a command's options, which have the same names."""
    known = EngineOptions.__dataclass_fields__
    return EngineOptions(**{name: v for name, v in vars(options).items() if name in known})
