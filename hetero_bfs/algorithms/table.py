"""The table of algorithms. Each row has a function, a method of engines and a command.

A row is data and a descriptor. `Engine` and `RankEngine` derive from `Algorithms`, so each row is a
method of both. `hb.X` is the same function for a graph that is used once (engine/calls.py). The
command, its help, its JSON and a page of the reference are made from the row.

One typed function in the algorithm's folder gives all of these their parameters, defaults, checks
and docstring. It takes the number of vertices before the user's arguments and returns a `Request`.
Type checkers see its parameters and result, since the type of a row carries them.

This module does not import NumPy, since the command line makes its parser from it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeVar,
    overload,
)

from hetero_bfs.algorithms.bfs import bfs
from hetero_bfs.algorithms.colouring import colour
from hetero_bfs.algorithms.components import connected_components
from hetero_bfs.algorithms.multi_source import bfs_many
from hetero_bfs.algorithms.pagerank import pagerank
from hetero_bfs.algorithms.sssp import sssp

if TYPE_CHECKING:
    from hetero_bfs.algorithms.base import Request

P = ParamSpec("P")
R = TypeVar("R")

_PARAMETERS = "Parameters\n----------\n"
_RAISES = "Raises\n------\n"
_RAISED_BY_ENGINES = """\
EngineClosedError, ForkError
    The engine is closed, or was opened in another process, from which this one was forked.
AgreedError
    On all ranks of a `RankEngine`: any of these, or the algorithm runs in one process only.
"""


class ResultOption(NamedTuple):
    """An attribute of the result that the command can write, and the option's help."""

    attribute: str
    help: str


@dataclass(eq=False)
class Row(Generic[P, R]):
    """An algorithm, as the function, the methods and the command share it.

    ask : the typed function in the algorithm's folder, with the name of the public one
    title : of the section in the reference
    command, help, description : name and texts of the command, if there is one
    outputs : the attributes that the command can write, by option
    options, graph, directed : help of options and of the arguments `graph` and `directed`
    record : the noun for a row of the trace
    names : further public names, such as the result's class, with their modules in the folder
    on_ranks : whether several ranks can run it; then its `Runs` have `by_ranks`
    selects : whether a selector chooses its strategies; then the command has selectors' options
    """

    ask: Callable[Concatenate[int, P], Request[R]]
    title: str
    command: str | None = None
    help: str = ""
    description: str = ""
    outputs: Mapping[str, ResultOption] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    record: str = "iteration"
    names: Mapping[str, str] = field(default_factory=dict)
    on_ranks: bool = False
    graph: str = "graph file"
    directed: str = "keep the edges' direction"
    selects: bool = False

    @property
    def name(self) -> str:
        """Name of the function and of the methods."""
        return self.ask.__name__

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Parameters without the number of vertices."""
        found = dict(inspect.signature(self.ask).parameters)
        del found["num_vertices"]
        return found

    @overload
    def __get__(self, door: None, owner: type) -> Callable[Concatenate[Any, P], R]: ...
    @overload
    def __get__(self, door: Any, owner: type) -> Callable[P, R]: ...
    def __get__(self, door: Any, owner: type) -> Any:
        return self._method if door is None else MethodType(self._method, door)

    @cached_property
    def _method(self) -> FunctionType:
        def method(self: Algorithms, /, *args: Any, **kwargs: Any) -> Any:
            return self._answer(row, *args, **kwargs)

        row = self
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        return self.shown(method, [itself], [], "", "", _RAISED_BY_ENGINES)

    def shown(
        self,
        function: Any,
        before: Iterable[inspect.Parameter],
        after: Iterable[inspect.Parameter],
        docs_before: str,
        docs_after: str,
        raises: str,
    ) -> FunctionType:
        """Give a function this row's name, signature and docstring, with more parameters added."""
        function.__name__ = function.__qualname__ = self.name
        function.__doc__ = _joined(self.ask.__doc__ or "", docs_before, docs_after, raises)
        returns = inspect.signature(self.ask).return_annotation
        function.__signature__ = inspect.Signature(
            [*before, *self.parameters.values(), *after],
            return_annotation=re.sub(r"^Request\[(.*)\]$", r"\1", str(returns)),
        )
        made: FunctionType = function
        return made


def _joined(text: str, before: str, after: str, raises: str) -> str:
    """Return a docstring with more parameters before and after its own, and with more errors."""
    head, _, errors = inspect.cleandoc(text).partition(_RAISES)
    summary, _, parameters = head.partition(_PARAMETERS)
    parameters = "\n".join(part.strip("\n") for part in (before, parameters, after) if part)
    sections = [summary.strip()]
    if parameters:
        sections.append(f"{_PARAMETERS}{parameters}")
    sections.append(f"{_RAISES}{errors.strip()}\n{raises.strip()}")
    return "\n\n".join(sections) + "\n"


class Algorithms:
    """The table. A derived class runs a row in `_answer`."""

    def _answer(self, row: Row[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run an algorithm. The arguments are not checked yet."""
        raise NotImplementedError

    bfs = Row(
        bfs,
        command="bfs",
        title="Breadth-first search",
        help="search any graph from one vertex or several",
        description="Search a graph file from one vertex, or from the nearest of several.",
        options={
            "source": "vertex id from 0 on, or name; give it several times for several sources",
            "depth_limit": "reach no vertex farther than N edges",
            "target": "stop at this vertex; print the path to it",
            "mask": "ignore these vertices: one id or name a line, or NumPy .npy of ids or of "
            "flags",
            "reverse": "follow edges backwards (with --directed)",
            "dtype": "type of the parents (default %(default)s)",
        },
        outputs={
            "out": ResultOption("parent", "write parents (-1 unreached)"),
            "levels": ResultOption("level", "write levels (int32)"),
        },
        record="level",
        names={"BFSResult": "result", "validate": "check"},
        on_ranks=True,
        selects=True,
    )

    bfs_many = Row(
        bfs_many,
        title="Multi-source searches",
        names={"ManySearches": "result"},
    )

    sssp = Row(
        sssp,
        command="sssp",
        title="Shortest paths",
        help="find shortest paths from one vertex of a weighted graph",
        description="Find the least distances from one vertex of a weighted graph file: an edge "
        "list with a third column, a Matrix Market file of numbers, or another with weights.",
        graph="graph file with weights of at least 0",
        options={"source": "vertex id from 0 on, or the vertex's name"},
        outputs={
            "out": ResultOption("distance", "write distances (float64, inf unreached)"),
            "parents": ResultOption("parent", "write parents (int64, -1 unreached)"),
        },
        record="window",
        names={"ShortestPaths": "result", "WindowTrace": "result", "check_paths": "check"},
        on_ranks=True,
    )

    connected_components = Row(
        connected_components,
        command="components",
        title="Connected components",
        help="find the connected components of a graph",
        description="Find the connected components of a graph file. The direction of edges does "
        "not matter.",
        outputs={
            "out": ResultOption(
                "component",
                "write the smallest vertex of each vertex's component (int64)",
            )
        },
        record="phase",
        names={"Components": "result", "check_components": "check"},
        on_ranks=True,
    )

    colour = Row(
        colour,
        command="colour",
        title="Colouring",
        help="colour the vertices of a graph so that neighbours differ",
        description="Colour the vertices of a graph file so that no edge joins two of one colour.",
        options={
            "start": "colours of an earlier version of the graph, a file that --out wrote; if "
            "vertices have names, .csv, .npz or .parquet"
        },
        outputs={"out": ResultOption("colour", "write colours (int32, from 0 on)")},
        names={"Colouring": "result", "check_colouring": "check"},
        directed="read the file's edges as directed",
    )

    pagerank = Row(
        pagerank,
        command="pagerank",
        title="PageRank",
        help="compute the PageRank of a graph's vertices",
        description="Compute the PageRank of every vertex of a graph file, as NetworkX defines it.",
        options={
            "alpha": "damping, 0 to 1 (default %(default)s)",
            "tol": "stop when the ranks change by less than this, on average (default %(default)s)",
            "max_iter": "most iterations (default %(default)s)",
            "weighted": "divide ranks in proportion to edges' weights",
        },
        outputs={"out": ResultOption("rank", "write ranks (float64)")},
        names={"PageRank": "result", "check_pagerank": "check"},
        on_ranks=True,
    )


def rows() -> dict[str, Row[Any, Any]]:
    return {name: row for name, row in vars(Algorithms).items() if isinstance(row, Row)}


def commands() -> dict[str, Row[Any, Any]]:
    return {row.command: row for row in rows().values() if row.command is not None}


def public_names() -> dict[str, str]:
    """Return the module, relative to the package, of each further public name."""
    found: dict[str, str] = {}
    for row in rows().values():
        folder = row.ask.__module__.removeprefix("hetero_bfs.")
        found |= {name: f"{folder}.{module}" for name, module in row.names.items()}
    return found
