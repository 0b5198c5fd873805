"""What an installation needs: modules that may be absent, extras, containers, the sdist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib

import pytest
from checkout import TOP
from cli_runs import one_line_of

from hetero_bfs.cli.arguments import make_parser

PACKAGING = TOP / "packaging"

BLOCKER = """
import builtins, importlib, os

blocked = os.environ["BLOCKED_MODULES"].split(",")
usual, usual_module = builtins.__import__, importlib.import_module

def imported(name, globals=None, *rest, **more):
    importer = (globals or {}).get("__name__") or ""
    if name.partition(".")[0] in blocked and not importer.startswith("psutil"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return usual(name, globals, *rest, **more)

def module(name, package=None):
    if name.partition(".")[0] in blocked:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return usual_module(name, package)

builtins.__import__, importlib.import_module = imported, module
"""
"""psutil's modules for Linux need `resource`; those for other systems do not."""


@pytest.fixture
def without(tmp_path):
    """Return a function that runs Python without some modules, in its children, too."""
    place = tmp_path / "blocker"
    place.mkdir()
    (place / "sitecustomize.py").write_text(BLOCKER)
    (tmp_path / "g.txt").write_text("0 1\n1 2\n2 3\n")

    def run(modules: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(place), *filter(None, sys.path)])
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "BLOCKED_MODULES": modules},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


NO_LOCKS = "fcntl,resource"
SEARCH = """
import hetero_bfs as hb
graph = hb.kronecker(8)
with hb.Engine(graph) as engine:
    assert hb.validate(graph, 1, engine.bfs(1).parent).valid
assert hb.bfs(graph, 1).level.max() > 0
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", SEARCH),
        ("-m", "hetero_bfs", "graph500", "--scale", "8", "--sources", "4", "--json", "-"),
    ],
    ids=["Python", "graph500"],
)
def test_systems_without_fcntl_and_resource(without, arguments):
    done = without(NO_LOCKS, *arguments)
    assert done.returncode == 0, done.stderr


def test_the_blocker_blocks(without):
    for name in NO_LOCKS.split(","):
        assert "No module named" in without(NO_LOCKS, "-c", f"import {name}").stderr


def test_commands_without_the_packages_of_extras(without):
    """Everything but the study runs without matplotlib."""
    absent = "matplotlib"
    done = without(absent, "-m", "hetero_bfs", "study", "page")
    assert done.returncode == 1
    line = one_line_of(done.stderr)
    for word in (absent, "not installed", f"pip install {absent}", "pip install '.["):
        assert word in line
    found = without(absent, "-m", "hetero_bfs", "bfs", "g.txt", "--source", "0", "--device", "cpu")
    assert found.returncode == 0, found.stderr
    every = (
        "import pkgutil, hetero_bfs, importlib\n"
        "for found in pkgutil.walk_packages(hetero_bfs.__path__, 'hetero_bfs.'):\n"
        "    apart = 'hetero_bfs.study', 'hetero_bfs.__main__'\n"
        "    if not found.name.startswith(apart):\n"
        "        importlib.import_module(found.name)\n"
    )
    done = without(absent, "-c", every)
    assert done.returncode == 0, done.stderr


def test_no_advice_to_install_a_name_of_others():
    """On PyPI the name hetero_bfs is not ours."""
    folders = (".ci", "benchmarks", "docs", "hetero_bfs", "packaging", "tests", "training")
    files = [*TOP.iterdir(), *(file for one in folders for file in (TOP / one).rglob("*"))]
    texts = [file for file in files if file.name.endswith((".py", ".md", ".toml", "start", "run"))]
    assert len(texts) > 300
    for file in texts:
        found = re.search(r"(pip|pipx|uv) install [^\n]{0,20}\bhetero[-_]bfs\b", file.read_text())
        assert found is None or file.name == "test_installing.py", (file, found)


INSTRUCTIONS = {"FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}


def dockerfile() -> list[tuple[str, str]]:
    """Return the instructions and their arguments, with continued lines joined."""
    text = re.sub(r"(?m)^#.*\n", "", (PACKAGING / "Dockerfile").read_text()).replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    return [(word, rest.strip()) for word, rest in lines]


def sections() -> dict[str, str]:
    """Return the header ("") and the sections of Apptainer's recipe."""
    parts = re.split(r"(?m)^%(\w+)\n", (PACKAGING / "apptainer.def").read_text())
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def shell_checks(script: str, shell: str = "sh") -> None:
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), (script, done.stderr)


def commands_parse(script: str) -> None:
    """Every call of the command line with options is one that it takes."""
    calls = re.findall(r"hetero-bfs ([a-z][a-z0-9-]*(?: --?[\w-]+(?: [\w.]+)?)*)", script)
    for call in calls:
        make_parser("0").parse_args(call.split())  # exits if it is wrong


def test_the_dockerfile():
    lines = dockerfile()
    assert {word for word, _ in lines} <= INSTRUCTIONS
    assert lines[0][0] == "FROM"
    for word, rest in lines:
        if word == "FROM":
            assert re.fullmatch(r"[\w.-]+:(?!latest)[\w.-]+( AS \w+)?", rest), rest
        elif word == "RUN":
            shell_checks(rest)
            commands_parse(rest)
        elif word in ("CMD", "ENTRYPOINT"):
            assert all(isinstance(part, str) for part in json.loads(rest))
        elif word == "COPY" and not rest.startswith("--from=build /wheels "):
            assert rest == ". /src"
    words = [word for word, _ in lines]
    assert max(i for i, word in enumerate(words) if word == "RUN") < words.index("USER")
    assert lines[-1] == ("CMD", '["doctor"]')


def test_the_apptainer_recipe():
    found = sections()
    assert set(found) == {"", "files", "post", "environment", "runscript", "test"}
    header = [line for line in found[""].splitlines() if line and not line.startswith("#")]
    assert header == ["Bootstrap: docker", "From: debian:trixie-slim"]
    for name in ("post", "environment", "runscript", "test"):
        shell_checks(found[name])
        commands_parse(found[name].replace('"$@"', ""))


def test_images_agree():
    """Both compile for the same CPUs, into the folder that they name afterwards."""
    docker = " ".join(rest for _, rest in dockerfile())
    apptainer = "".join(sections().values())
    for text in (docker, apptainer):
        for part in (
            'NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=""',
            "NUMBA_CACHE_DIR=/opt/compiled ",
            "HETERO_BFS_COMPILED=/opt/compiled/hetero_bfs-0",
            "warm-up --device cpu",
            "pocl-opencl-icd",
        ):
            assert part in text


def test_the_conda_recipe_needs_what_the_wheel_needs():
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    recipe = (PACKAGING / "conda" / "recipe.yaml").read_text()
    run = recipe.partition("\n  run:\n")[2].partition("\n\n")[0].splitlines()
    wanted = [re.sub("([<>=].*)", r" \1", line) for line in project["dependencies"]]
    python = f"python {project['requires-python']}"
    assert [line.strip().removeprefix("- ") for line in run] == [python, *wanted]
    assert f"- {python}\n" in recipe.partition("  host:\n")[2]
    [(script, target)] = project["scripts"].items()
    assert f"- {script} = {target}" in recipe


def test_pythons_agree():
    """Pyproject, its classifiers, ./start, .ci/packages and the doctor name the same Pythons."""
    from hetero_bfs.doctor.installation import _SUPPORTED

    (low, high) = _SUPPORTED
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">=3.{low[1]},<3.{high[1]}"
    named = [f"3.{minor}" for minor in range(low[1], high[1])]
    versions = (line.rpartition(" :: ")[2] for line in project["classifiers"])
    assert [version for version in versions if re.fullmatch(r"3\.\d+", version)] == named
    for name in ("start", ".ci/packages"):
        text = (TOP / name).read_text()
        assert f"{low} <= sys.version_info < {high}" in text
        assert all(f"python{version}" in text for version in named)
