"""What cpu_peers.py compares, behind one little interface: our search here, others' in
cpu_peer_codes.py.

`prepare` a case, `search` from a key, and be checked: parents are not unique, levels are, so every
contestant's levels must be those of our search, which the five checks of validate.py have passed.
"""
# ruff: noqa: D102  (the methods are described once, in Contestant)

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import hetero_bfs as hb

UNTIMED_SECONDS = 0.02
"""Of searches before the timed one, in which the cores' clocks rise again after a pause."""

_SPINNING = "GOMP_SPINCOUNT"
ENVIRONMENT = dict(os.environ)
"""The peers', from before hetero_bfs shortens GNU OpenMP's spinning for itself."""


@contextmanager
def usual_spinning() -> Iterator[None]:
    """Let libraries that load meanwhile see how long OpenMP's threads spin without hetero_bfs.

    They read it once, as they load.
    """
    ours = os.environ.pop(_SPINNING, None)
    if _SPINNING in ENVIRONMENT:
        os.environ[_SPINNING] = ENVIRONMENT[_SPINNING]
    try:
        yield
    finally:
        if ours is not None:
            os.environ[_SPINNING] = ours


@dataclass(frozen=True, eq=False)
class Case:
    """One graph, the .sg file of it that all read, and the keys that all search from."""

    name: str
    path: Path
    graph: hb.CSRGraph
    keys: list[int]

    @cached_property
    def edges(self) -> hb.EdgeList:
        """Every edge once."""
        src = np.repeat(np.arange(self.graph.num_vertices, dtype=np.uint32), self.graph.degree())
        once = src < self.graph.indices
        return hb.EdgeList(src[once], self.graph.indices[once], self.graph.num_vertices)

    @cached_property
    def engine(self) -> hb.Engine:
        """Our engine, shared by the two ways of timing it."""
        return hb.Engine(self.graph, devices="cpu")


class Contestant:
    """Prepares a graph, then searches it; the class attributes are for the tables."""

    name = ""
    gives = ""  # what is timed
    package = ""  # of pip
    needs = ""  # another package that it does not bring along
    parallel = False
    what = "call"  # which of our two times is the like of this one
    warms_itself = False

    @property
    def title(self) -> str:
        """Name this contestant as the head of a column does."""
        return f"{self.name} {self.what}"

    def prepare(self, case: Case) -> None:
        """Bring the graph into this contestant's form, untimed."""
        raise NotImplementedError

    def search(self, key: int) -> tuple[float, Any]:
        """Search once; return seconds and what was found, in the contestant's own form."""
        raise NotImplementedError

    def parents(self, found: Any, key: int) -> npt.NDArray[np.int64]:
        """Turn what was found into parents: the source its own, -1 where not reached."""
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
    """The whole call, as a Python program sees it."""

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
        return self.search(key)[0]  # what it finds is what the call brings home


def timed(function: Callable[..., Any], *arguments: object) -> tuple[float, Any]:
    """Return the seconds of a call and its result."""
    started = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - started, result
