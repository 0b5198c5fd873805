"""hetero_bfs: adaptive breadth-first search on CPUs and OpenCL devices.

>>> import hetero_bfs as hb
>>> graph = hb.kronecker(18)
>>> with hb.Engine(graph) as engine:
...     result = engine.bfs(source=1)
>>> result.parent, result.level, result.traces

The names below are imported when first used, so that the command line starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hetero_bfs.built import VERSION

if TYPE_CHECKING:
    from hetero_bfs import csgraph
    from hetero_bfs.algorithms.bfs.check import validate
    from hetero_bfs.algorithms.bfs.result import BFSResult
    from hetero_bfs.algorithms.colouring.check import check_colouring
    from hetero_bfs.algorithms.colouring.result import Colouring
    from hetero_bfs.algorithms.components.check import check_components
    from hetero_bfs.algorithms.components.result import Components
    from hetero_bfs.algorithms.multi_source.result import ManySearches
    from hetero_bfs.algorithms.pagerank.check import check_pagerank
    from hetero_bfs.algorithms.pagerank.result import PageRank
    from hetero_bfs.algorithms.sssp.check import check_paths
    from hetero_bfs.algorithms.sssp.result import ShortestPaths, WindowTrace
    from hetero_bfs.algorithms.table import Algorithms as _Algorithms
    from hetero_bfs.engine.calls import one_call as _one_call
    from hetero_bfs.engine.engine import Engine
    from hetero_bfs.engine.rank_engine import RankEngine
    from hetero_bfs.errors import (
        AgreedError,
        ArgumentError,
        DeviceError,
        EngineClosedError,
        ForkError,
        GraphError,
        GraphFileError,
        HeteroBFSError,
        ModelError,
        ProgramError,
        ValidationError,
    )
    from hetero_bfs.graph.csr import CSRGraph
    from hetero_bfs.graph.edge_list import EdgeList
    from hetero_bfs.graph.generators.kronecker import KroneckerEdges, RMATEdges, kronecker
    from hetero_bfs.graph.io.registry import load
    from hetero_bfs.options import EngineOptions
    from hetero_bfs.programs.options import RunOptions
    from hetero_bfs.programs.program import (
        Program,
        any_one,
        bitwise_or,
        maximum,
        minimum,
        most_frequent,
        plus,
    )
    from hetero_bfs.programs.result import ProgramResult
    from hetero_bfs.scheduling.trace import IterationTrace, LevelFeatures, LevelTrace
    from hetero_bfs.timeline.rendering import save_timeline

    bfs = _one_call(_Algorithms.bfs)
    bfs_many = _one_call(_Algorithms.bfs_many)
    colour = _one_call(_Algorithms.colour)
    connected_components = _one_call(_Algorithms.connected_components)
    pagerank = _one_call(_Algorithms.pagerank)
    sssp = _one_call(_Algorithms.sssp)


__version__ = VERSION

__all__ = [
    "AgreedError",
    "ArgumentError",
    "BFSResult",
    "CSRGraph",
    "Colouring",
    "Components",
    "DeviceError",
    "EdgeList",
    "Engine",
    "EngineClosedError",
    "EngineOptions",
    "ForkError",
    "GraphError",
    "GraphFileError",
    "HeteroBFSError",
    "IterationTrace",
    "KroneckerEdges",
    "LevelFeatures",
    "LevelTrace",
    "ManySearches",
    "ModelError",
    "PageRank",
    "Program",
    "ProgramError",
    "ProgramResult",
    "RMATEdges",
    "RankEngine",
    "RunOptions",
    "ShortestPaths",
    "ValidationError",
    "WindowTrace",
    "any_one",
    "bfs",
    "bfs_many",
    "bitwise_or",
    "check_colouring",
    "check_components",
    "check_pagerank",
    "check_paths",
    "colour",
    "connected_components",
    "csgraph",
    "kronecker",
    "layered",
    "load",
    "maximum",
    "minimum",
    "most_frequent",
    "pagerank",
    "plus",
    "save_timeline",
    "sssp",
    "validate",
]

_NAMES_OF = {
    "errors": (
        "AgreedError ArgumentError DeviceError EngineClosedError ForkError GraphError "
        "GraphFileError HeteroBFSError ModelError ProgramError ValidationError"
    ),
    "engine.engine": "Engine",
    "engine.rank_engine": "RankEngine",
    "graph.csr": "CSRGraph",
    "graph.edge_list": "EdgeList",
    "graph.generators.kronecker": "KroneckerEdges RMATEdges kronecker",
    "graph.io.registry": "load",
    "graph.search_graph": "layered",
    "options": "EngineOptions",
    "programs.options": "RunOptions",
    "programs.program": "Program any_one bitwise_or maximum minimum most_frequent plus",
    "programs.result": "ProgramResult",
    "scheduling.trace": "IterationTrace LevelFeatures LevelTrace",
    "timeline.rendering": "save_timeline",
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    import_module(f"{__name__}.support")  # before anything loads Numba
    if name == "csgraph":
        return import_module(f"{__name__}.{name}")
    table = import_module(f"{__name__}.algorithms.table")
    modules = {**_MODULE_OF, **table.public_names()}
    if name in modules:
        value = getattr(import_module(f"{__name__}.{modules[name]}"), name)
    elif name in table.rows():
        one_call = import_module(f"{__name__}.engine.calls").one_call
        value = one_call(getattr(table.Algorithms, name))
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
