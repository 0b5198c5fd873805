"""What an installation needs: modules that may be absent, extras, containers, the sdist."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from checkout import TOP

BLOCKER = """
import builtins, os

blocked = os.environ["BLOCKED_MODULES"].split(",")
usual = builtins.__import__

def imported(name, globals=None, *rest, **more):
    importer = (globals or {}).get("__name__") or ""
    if name.partition(".")[0] in blocked and not importer.startswith("psutil"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return usual(name, globals, *rest, **more)

builtins.__import__ = imported
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
        ("-m", "hetero_bfs", "bfs", "g.txt", "--source", "0", "--out", "parents.npy"),
        ("-m", "hetero_bfs", "graph500", "--scale", "8", "--sources", "4", "--json", "-"),
    ],
    ids=["Python", "bfs", "graph500"],
)
def test_systems_without_fcntl_and_resource(without, arguments):
    done = without(NO_LOCKS, *arguments)
    assert done.returncode == 0, done.stderr


def test_the_blocker_blocks(without):
    for name in NO_LOCKS.split(","):
        assert "No module named" in without(NO_LOCKS, "-c", f"import {name}").stderr


def test_commands_without_the_packages_of_extras(without):
    """Everything but training and the study runs without scikit-learn and matplotlib."""
    absent = "sklearn,matplotlib"
    for command, package in (("train", "scikit-learn"), ("study", "matplotlib")):
        done = without(absent, "-m", "hetero_bfs", command, *["page"] * (command == "study"))
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1, done.stderr
        for word in (package, "not installed", f"pip install {package}", "pip install '.["):
            assert word in done.stderr
    found = without(absent, "-m", "hetero_bfs", "bfs", "g.txt", "--source", "0", "--device", "cpu")
    assert found.returncode == 0, found.stderr
    every = (
        "import pkgutil, hetero_bfs, importlib\n"
        "for found in pkgutil.walk_packages(hetero_bfs.__path__, 'hetero_bfs.'):\n"
        "    if not found.name.startswith(('hetero_bfs.training', 'hetero_bfs.__main__')):\n"
        "        importlib.import_module(found.name)\n"
    )
    done = without(absent, "-c", every)
    assert done.returncode == 0, done.stderr


def test_no_advice_to_install_a_name_of_others():
    """On PyPI the name hetero_bfs is not ours."""
    tracked = subprocess.check_output(["git", "ls-files", "-z"], cwd=TOP, text=True).split("\0")
    texts = [name for name in tracked if name.endswith((".py", ".md", ".toml", "start", "run"))]
    assert len(texts) > 300
    for name in texts:
        found = re.search(
            r"(pip|pipx|uv) install [^\n]{0,20}\bhetero[-_]bfs\b", (TOP / name).read_text()
        )
        assert found is None or name == "tests/unit/project/test_installing.py", (name, found)
