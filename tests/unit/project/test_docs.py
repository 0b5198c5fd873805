"""What README and docs/ say is so: their code runs, their commands parse, their links lead on."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import signal
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from unittest import mock

import pytest
from checkout import TOP

import hetero_bfs
from hetero_bfs.cli.arguments import make_parser

sys.path.append(str(TOP / "docs"))
from reference_rows import MARK, sections

CHOICES = next(a for a in make_parser("0")._actions if a.dest == "command").choices


def _pages() -> list[Path]:
    pages = (TOP / "docs").rglob("*.md")
    return [*sorted(TOP.glob("*.md")), *sorted(p for p in pages if "_build" not in p.parts)]


def _blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """Return the fenced blocks in a language, each with the number of its first line."""
    text = page.read_text()
    found = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, block.start(1)) + 1, block[1]) for block in found]


def _shell_lines() -> list:
    """Return every line of every shell block, without its comment."""
    return [
        pytest.param(line, id=f"{page.relative_to(TOP)}:{first + number}")
        for page in _pages()
        for first, block in _blocks(page, "sh")
        for number, line in enumerate(block.splitlines())
    ]


def _spans() -> list[tuple[Path, str]]:
    """Return every piece of code within a sentence or table."""
    prose = [(page, re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S))
             for page in _pages()]  # fmt: skip
    return [(page, span) for page, text in prose for span in re.findall(r"`([^`]+)`", text)]


def _known_options() -> set[str]:
    """Return every option that the help of any command names."""
    help_texts = [_help(command) for command in CHOICES]
    return {option for text in help_texts for option in re.findall(r"--[a-z][a-z0-9-]*", text)}


def _help(command: str) -> str:
    return CHOICES[command].format_help()


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "page",
    [p for p in _pages() if _blocks(p, "python")],
    ids=lambda page: str(page.relative_to(TOP)),
)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {"__name__": "page"}
    for first, block in _blocks(page, "python"):
        exec(compile("\n" * (first - 1) + block, str(page), "exec"), namespace)


@pytest.mark.parametrize("line", _shell_lines())
def test_a_command_that_is_shown_can_be_run(line):
    words = shlex.split(line, comments=True)
    while words and re.match(r"[A-Z][A-Z_]*=", words[0]):
        del words[0]
    match words:
        case []:
            pytest.fail("a line without a command")
        case ["hetero-bfs", *arguments]:
            make_parser("0").parse_args(arguments)
        case ["mpirun" | "srun", *words] if "hetero-bfs" in words:
            make_parser("0").parse_args(words[words.index("hetero-bfs") + 1 :])
        case ["./start", command, *_]:
            assert command in subprocess.check_output([TOP / "start", "help"], text=True)
        case ["python", "-m", "benchmarks", subject, *options]:
            _options_are_known(["benchmarks", subject], options)
        case ["python", "-m", module, *options]:
            _options_are_known([module], options)
        case ["python", script, *options]:
            _options_are_known([script], options)
        case _:
            pytest.fail(f"nothing checks {words[0]}; add how, or do not show it")


def _options_are_known(program: list[str], options: list[str]) -> None:
    named = {word for word in options if word.startswith("--")}
    assert named <= _options_of(*program)


@cache
def _options_of(*program: str) -> set[str]:
    """Run in this process, which has imported what takes a process of its own long."""
    run = runpy.run_path if program[0].endswith(".py") else runpy.run_module
    on_end = signal.getsignal(signal.SIGTERM)  # which some programs set
    out = io.StringIO()
    with (
        mock.patch.object(sys, "argv", [*program, "--help"]),
        mock.patch.object(sys, "path", [str(TOP), *sys.path]),
        mock.patch.dict("os.environ"),
        contextlib.redirect_stdout(out),
        pytest.raises(SystemExit),
    ):
        run(program[0], run_name="__main__")
    signal.signal(signal.SIGTERM, on_end)
    return set(re.findall(r"--[a-z][a-z0-9-]*", out.getvalue()))


def test_commands_and_options_in_prose_are_those_there_are():
    known = _known_options()
    for page, span in _spans():
        words = span.split()
        if words[0] == "hetero-bfs" and len(words) > 1:
            assert words[1] in CHOICES, (page, span)
            options = {word for word in words if word.startswith("--")}
            assert options <= set(re.findall(r"--[a-z0-9-]+", _help(words[1]))), (page, span)
        elif words[0].startswith("--") and page.name != "testing.md":  # which is of compare.py's
            assert words[0] in known, (page, span)


def test_links_lead_to_files():
    for page in _pages():
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
        targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[\w+\]: (\S+)$", text, re.M)
        for target in targets:
            assert (page.parent / target.partition("#")[0]).exists(), (page, target)


def test_the_table_of_programs_has_their_lines():
    folder = TOP / "docs/programs"
    table = (folder / "index.md").read_text()
    rows = re.findall(r"^\| \[.*\]\((\S+)\) \| (\d+) \| (.+?) \|", table, re.MULTILINE)
    assert {name for name, _, _ in rows} == {p.name for p in folder.glob("*.md")} - {"index.md"}
    for name, count, combine in rows:
        text = (folder / name).read_text()
        code = re.search(r"^class \w+\(hb\.Program\):\n(?:(?: {4}.*)?\n)+", text, re.MULTILINE)
        assert sum(map(bool, code[0].splitlines())) == int(count), name
        stated = {"none: a loop": "in messages:\n", "one for each field": "combine = {"}
        assert stated.get(combine, f"combine = hb.{combine.strip('`')}\n") in code[0], name


def test_files_named_in_prose_are_there():
    packages = [TOP, TOP / "hetero_bfs", TOP / "hetero_bfs/algorithms/bfs"]
    for page, span in _spans():
        if re.fullmatch(r"[\w./-]+/[\w.-]+\.(py|cl|md|toml)", span):
            assert any((top / span).exists() for top in packages), (page, span)


def test_every_public_name_is_in_the_reference():
    text = (TOP / "docs/reference.md").read_text().replace(MARK, sections())
    documented = set(re.findall(r"hetero_bfs\.(\w+)$", text, re.MULTILINE))
    assert documented == set(hetero_bfs.__all__)


def test_every_layer_is_on_the_page_about_architecture():
    with (TOP / "pyproject.toml").open("rb") as handle:
        contracts = tomllib.load(handle)["tool"]["importlinter"]["contracts"]
    lines = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    layers = {name.strip(" ()") for line in lines for name in line.split("|")} - {
        "__main__",
        "_version",
    }
    text, _, _ = (TOP / "docs/development/architecture.md").read_text().partition("## The folder")
    assert set(re.findall(r"^\| `(\w+)", text, re.MULTILINE)) == layers


def test_the_readme_is_short():
    lines = (TOP / "README.md").read_text().splitlines()
    assert len(lines) <= 200
    assert max(map(len, lines)) <= 100
