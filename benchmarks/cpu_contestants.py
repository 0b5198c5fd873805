"""The contestants of cpu_peers.py behind one interface: ours here, others in cpu_peer_codes.py.

A contestant prepares a case, searches from a key, and is checked. Parents are not unique but levels
are. So every contestant's levels must equal those of our search, which check.py has checked.
"""
# ruff: noqa: D102  (the methods are described once, in Contestant)

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from libraries import edges_once, timed

import hetero_bfs as hb

UNTIMED_SECONDS = 0.02
"""Seconds of searches before the timed one; the cores' clocks rise in this time after a pause."""


@dataclass(frozen=True, eq=False)
class Case:
    """One graph, its .sg file, and the search keys; all contestants use the same."""

    name: str
    path: Path
    graph: hb.CSRGraph
    keys: list[int]

    @cached_property
    def edges(self) -> hb.EdgeList:
        """Every edge once."""
        return edges_once(self.graph)

    @cached_property
    def engine(self) -> hb.Engine:
        """Our engine, shared by the two contestants that time it."""
        return hb.Engine(self.graph, device="cpu")


class Contestant:
    """Prepares a graph, then searches it; the class attributes are for the tables."""

    name = ""
    gives = ""  # description of the timed work
    package = ""  # of pip
    needs = ""  # another package to install
    parallel = False
    what = "call"  # the one of our two times to compare with
    warms_itself = False

    @property
    def title(self) -> str:
        """Name of this contestant for the head of a column."""
        return f"{self.name} {self.what}"

    def prepare(self, case: Case) -> None:
        """Convert the graph to this contestant's format, untimed."""
        raise NotImplementedError

    def search(self, key: int) -> tuple[float, Any]:
        """Search once; return the seconds and the result in the contestant's own format."""
        raise NotImplementedError

    def parents(self, found: Any, key: int) -> npt.NDArray[np.int64]:
        """Convert a result to parents: the source its own, -1 where not reached."""
        raise NotImplementedError

    def version(self) -> str:
        """Name the release."""
        return f"{self.package} {version(self.package)}"

    def check(self, case: Case, key: int, expected: npt.NDArray[np.int32]) -> float:
        """Search once and stop the program unless the levels are as expected; return seconds."""
        seconds, found = self.search(key)
        parents = self.parents(found, key)
        result = hb.BFSResult(key, parents, seconds, 0.0, case.graph.input_degree, False, list)
        outcome = hb.validate(case.edges, key, result.parent, result.level)
        if not outcome.valid:
            sys.exit(f"{self.name} on {case.name}: {outcome.message}")
        self.compare(case, key, result.level, expected)
        return seconds

    def compare(
        self, case: Case, key: int, level: npt.NDArray[np.int32], expected: npt.NDArray[np.int32]
    ) -> None:
        """Stop the program at a vertex whose level is not the expected one."""
        if not np.array_equal(level, expected):
            at = int((level != expected).argmax())
            sys.exit(
                f"{self.name} on {case.name} from {key}: vertex {at} is at level {level[at]}, "
                f"hetero_bfs has {expected[at]} (-1: not reached)"
            )


class OurCall(Contestant):
    """The whole call from Python."""

    name = "hetero_bfs"
    gives = "`engine.bfs(key)`: parents in the caller's ids"
    package = "hetero_bfs"
    parallel = True

    def prepare(self, case: Case) -> None:
        self.engine = case.engine

    def version(self) -> str:
        return f"{super().version()} (selector {self.engine.selector.name})"

    def search(self, key: int) -> tuple[float, Any]:
        return timed(self.engine.bfs, key)

    def parents(self, found: Any, key: int) -> npt.NDArray[np.int64]:
        return found.parent


class OurSearch(OurCall):
    """The search alone, as Graph500 times it."""

    gives = "`engine.search(key).seconds`: parents complete in the engine's memory, relabelled"
    what = "search"

    def search(self, key: int) -> tuple[float, Any]:
        return self.engine.search(key).seconds, None

    def check(self, case: Case, key: int, expected: npt.NDArray[np.int32]) -> float:
        return self.search(key)[0]  # the result is the same as the call's, which is checked
