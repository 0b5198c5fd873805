"""The layout's promises: imports without cycles, one meaning for a module's name."""

from __future__ import annotations

import ast
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import hetero_bfs

PACKAGE = Path(hetero_bfs.__file__).parent
ROLES = {
    "algorithm", "lists", "host", "device", "streamed", "ranks", "ranks_host", "serial", "result",
    "check",
    "check_kernels", "ranks_check", "kernels", "loop", "phases", "options", "plan", "schema",
}  # fmt: skip
"""Names of modules that mean the same in each folder; other names are used once."""

NEEDED = {
    "algorithm", "lists", "host", "device", "streamed", "ranks", "result", "check", "kernels",
}  # fmt: skip
"""Roles that every algorithm has, unless `LACKING` has the reason."""

OF_GRAPH = "the lists are those of graph/, which other algorithms read, too"
OF_HOST = "a short class in host.py"
OF_DEVICE = "a short class in device.py"
BY_PROGRAM = "a vertex program, which `by_ranks` in algorithm.py runs"
LACKING = {
    "bfs": {"lists": OF_GRAPH},
    "multi_source": {
        "lists": OF_GRAPH,
        "device": "searches run on the host only",
        "streamed": "searches run on the host only",
        "ranks": "a single process searches",
        "check": "the check of bfs serves each search",
    },
    "sssp": {"lists": OF_GRAPH, "streamed": OF_DEVICE},
    "components": {"lists": OF_GRAPH, "streamed": OF_DEVICE, "ranks": BY_PROGRAM},
    "colouring": {
        "lists": OF_HOST,
        "streamed": OF_DEVICE,
        "ranks": "a single process colours",
    },
    "pagerank": {"lists": OF_HOST, "streamed": OF_DEVICE, "ranks": BY_PROGRAM},
}

MOST_LINES = 600
"""Kernels in Numba are a file up to this length, else a folder of files."""


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


def test_benchmarks_import_modules_that_exist():
    """No other test runs most of them."""
    known = modules()
    top = PACKAGE.parent
    missing = {
        f"{path.name}: {node.module}"
        for path in (top / "benchmarks").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hetero_bfs.")
        if node.module not in known
        and not (top / node.module.removeprefix("hetero_bfs.").replace(".", "/"))
        .with_suffix(".py")
        .exists()
    }
    assert not missing


def test_no_files_import_each_other_in_a_circle():
    known = modules()
    graph = {name: imports_of(path, known) - {name} for name, path in known.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(known)  # raises CycleError


def test_a_name_has_one_meaning():
    stems = Counter(path.stem for path in modules().values() if path.stem != "__init__")
    assert {stem for stem, count in stems.items() if count > 1} <= ROLES


def test_every_algorithm_has_the_same_roles():
    for folder in (PACKAGE / "algorithms").iterdir():
        if (folder / "__init__.py").exists():
            names = {path.stem for path in folder.iterdir()}
            assert names & NEEDED == NEEDED - LACKING.get(folder.name, {}).keys(), folder.name


def test_kernels_are_a_file_or_if_long_a_folder():
    for folder in (PACKAGE / "algorithms").iterdir():
        if (folder / "__init__.py").exists():
            files = [*folder.glob("kernels.py"), *folder.glob("kernels/*.py")]
            lines = sum(len(path.read_text().splitlines()) for path in files)
            assert (folder / "kernels.py").exists() == (lines <= MOST_LINES), folder.name
            assert (folder / "kernels").is_dir() == (lines > MOST_LINES), folder.name


def calls_of(tree: ast.AST) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_only_three_modules_can_execute_what_they_read():
    """As SECURITY.md says: compiled code, and the programs that users write."""
    able = {
        "support/code_cache.py",
        "programs/codegen/host_code.py",
        "programs/codegen/method_source.py",
    }
    forbidden = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "runpy"}
    found = set()
    for path in modules().values():
        tree = ast.parse(path.read_text())
        names = {
            name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in (getattr(node, "module", None) or "", *(a.name for a in node.names))
        }
        if names & forbidden or calls_of(tree) & {"eval", "exec"}:
            found.add(path.relative_to(PACKAGE).as_posix())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.load", "numpy.load"):
                options = {option.arg: ast.unparse(option.value) for option in node.keywords}
                assert options.get("allow_pickle") == "False", path
    assert found == able
