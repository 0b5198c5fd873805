"""Make the graph of Debian's packages: an edge from each package to each one that it may need.

    apt-get install -y lz4  # then, on Debian 12:
    lz4cat /var/lib/apt/lists/*_debian_dists_bookworm_main_binary-amd64_Packages.lz4 |
        python tests/data/debian_depends.py tests/data/debian-depends.txt.gz

Vertices are the packages of an index in the order of their names. An edge line is an entry of
Pre-Depends or Depends, alternatives included, if the index has that package; an entry that occurs
twice, with two versions, gives two lines. Prints what tests/support/real_graphs.py wants to know.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

import numpy as np
from cut import print_facts


def main() -> None:
    """Read an index from standard input, write the graph, print the facts."""
    needs = dict(filter(None, map(_needs_of, sys.stdin.read().split("\n\n"))))
    number = {name: i for i, name in enumerate(sorted(needs))}
    edges = [
        (number[name], number[need]) for name in number for need in needs[name] if need in number
    ]
    head = [
        "# Debian 12 (bookworm), main, amd64: which package needs which",
        f"# Nodes: {len(number)} Edges: {len(edges)}",
    ]
    lines = [*head, *(f"{u}\t{v}" for u, v in edges), ""]
    Path(sys.argv[1]).write_bytes(gzip.compress("\n".join(lines).encode(), 9, mtime=0))
    print_facts(np.array(edges), number["libc6"], len(number))


def _needs_of(paragraph: str) -> tuple[str, list[str]] | None:
    """Return the name of a paragraph's package, and the names that it needs."""
    fields = dict(re.findall(r"^(Package|Pre-Depends|Depends): (.*)$", paragraph, re.M))
    if "Package" not in fields:
        return None
    entries = [fields[key] for key in ("Pre-Depends", "Depends") if key in fields]
    return fields["Package"], re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]*)", ", ".join(entries))


if __name__ == "__main__":
    main()
