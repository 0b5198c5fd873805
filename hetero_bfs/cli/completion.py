"""`hetero-bfs completion`: a script that lets a shell complete commands, options and files."""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path

import shtab

from hetero_bfs import __version__
from hetero_bfs.cli.arguments import make_parser


def run(options: Namespace) -> int:
    parser = make_parser(__version__)
    _complete_files(parser)
    print(shtab.complete(parser, options.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command)
