"""The layout's promises: imports without cycles, one meaning for a module's name."""

from __future__ import annotations

import ast
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import hetero_bfs

PACKAGE = Path(hetero_bfs.__file__).parent
SAME_ROLE = {"__init__"}
"""Names that several modules may have, as they mean the same in each folder."""


def modules() -> dict[str, Path]:
    paths = PACKAGE.rglob("*.py")
    names = {".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts): p for p in paths}
    return {name.removesuffix(".__init__"): path for name, path in names.items()}


def imports_of(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules of the package that a file imports anywhere, in functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                found.add(below if below in known else node.module)
    return found & known.keys()


def test_no_files_import_each_other_in_a_circle():
    known = modules()
    graph = {name: imports_of(path, known) - {name} for name, path in known.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(known)  # raises CycleError


def test_a_name_has_one_meaning():
    stems = Counter(path.stem for path in modules().values() if path.stem not in SAME_ROLE)
    assert {stem for stem, count in stems.items() if count > 1} == set()
