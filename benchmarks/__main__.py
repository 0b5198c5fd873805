"""The benchmarks by subject; without one, a list of the subjects."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
SUBJECTS = {
    "compare": "compare.py",
    "cpu-peers": "cpu_peers.py",
    "programs": "programs/__main__.py",
    "first-contact": "first_contact.py",
    "csgraph": "csgraph.py",
    "networkx": "networkx_backend.py",
    "multi-source": "multi_source.py",
    "gpu": "gpu.py",
    "gather": "gather.py",
    "tails": "tails.py",
    "scaling": "scaling.py",
    "modes": "modes.py",
    "regret": "regret.py",
    "program-regret": "program_regret.py",
    "transfer": "transfer.py",
}


def main() -> None:
    subject = sys.argv[1] if len(sys.argv) > 1 else None
    if subject in (None, "-h", "--help"):
        print("usage: python -m benchmarks SUBJECT [--help | ARGUMENTS]\n")
        for name, file in SUBJECTS.items():
            print(f"  {name:16}{_first_line(HERE / file)}")
        return
    if subject not in SUBJECTS:
        sys.exit(f"no subject {subject!r}; python -m benchmarks lists {', '.join(SUBJECTS)}")
    path = Path(SUBJECTS[subject])
    sys.argv = [f"python -m benchmarks {subject}", *sys.argv[2:]]
    if path.name == "__main__.py":
        runpy.run_module(f"benchmarks.{path.parent}", run_name="__main__")
    else:
        sys.path.insert(0, str(HERE))
        runpy.run_path(str(HERE / path), run_name="__main__")


def _first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0]


if __name__ == "__main__":
    main()
