"""Commands run in this process or in another, and the one line of an error."""

from __future__ import annotations

import subprocess
import sys

from hetero_bfs.cli import main as cli

CPU = ["--device", "cpu", "--selector", "fixed:TC"]
SMALL = ["graph500", "--scale", "8", "--sources", "4", *CPU]


def run(*arguments) -> int:
    """Run in this process."""
    return cli.main([str(argument) for argument in arguments])


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "hetero_bfs", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def one_line(capsys) -> str:
    """Return the one line of standard error that an error is, without notes.

    The first run on a machine also shows bars.
    """
    captured = capsys.readouterr()
    assert captured.out == ""
    return one_line_of(captured.err)


def one_line_of(text: str) -> str:
    lines = [
        line
        for line in text.splitlines()
        if line.strip() and "%|" not in line and not line.startswith("note: ")
    ]
    assert len(lines) == 1, lines
    assert lines[0].startswith("hetero-bfs: ")
    assert "internal error" not in lines[0]
    return lines[0]
