"""cuGraph beside our algorithms, through pylibcugraph, on a GPU of NVIDIA's.

It gets the same lists as ours, before the clock starts: ids as int32, weights as float32, every
vertex named, so that vertices without edges count. It renumbers them, which makes it faster, and
takes its memory from a pool.

* "cuGraph" is a call of pylibcugraph, until the GPU is done. The answer stays on the GPU: vertices
  in an order of cuGraph's, and their values. (Our searches end with the answer on the host.)
* "cuGraph, to the host" goes on until the values are on the host by vertex, as a call of ours does.

Its `sssp` and `bfs` first look up whether the source is a vertex, and always find predecessors.
Its `pagerank` has float32 ranks, keeps the mass of dangling vertices, and stops at a total change.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.libraries import least_members, timed
from benchmarks.programs.contest import Run
from hetero_bfs.algorithms.pagerank.host import PageRankSettings
from hetero_bfs.graph.csr import CSRGraph

_POOL_BYTES = 1 << 30  # at first; it grows

Found = tuple[Any, Any]
"""Vertices, and their values, on the GPU."""


class CuGraph:
    packages = ("pylibcugraph-cu13",)
    most_edges = (1 << 31) - 1

    def __init__(self, graph: CSRGraph, threads: int) -> None:
        self._cupy = importlib.import_module("cupy")
        memory = importlib.import_module("rmm.mr")
        self._library = importlib.import_module("pylibcugraph")
        pool = memory.PoolMemoryResource(memory.CudaMemoryResource(), _POOL_BYTES)
        memory.set_current_device_resource(pool)
        self._handle = self._library.ResourceHandle()
        self._lists = graph

    @cached_property
    def _graph(self) -> Any:
        return self._make(self._lists.weights)

    @cached_property
    def _transposed(self) -> Any:
        return self._make(None, store_transposed=True)

    def _make(self, weights: npt.NDArray[Any] | None, store_transposed: bool = False) -> Any:
        lists, array, library = self._lists, self._cupy.asarray, self._library
        n = lists.num_vertices
        sources = np.repeat(np.arange(n, dtype=np.int32), np.diff(lists.indptr))
        made = library.SGGraph(
            self._handle,
            library.GraphProperties(is_symmetric=not lists.directed, is_multigraph=False),
            array(sources),
            array(lists.indices.view(np.int32)),
            weight_array=None if weights is None else array(weights.astype(np.float32)),
            store_transposed=store_transposed,
            renumber=True,
            do_expensive_check=False,
            vertices_array=self._cupy.arange(n, dtype=np.int32),
        )
        self._cupy.get_default_memory_pool().free_all_blocks()
        return made

    def levels(self) -> dict[str, Run]:
        return self._both(self._bfs, _with_unreached)

    def paths(self) -> dict[str, Run]:
        return self._both(self._sssp, _with_infinity)

    def ranks(self, settings: PageRankSettings) -> dict[str, Run]:
        return self._both(partial(self._pagerank, settings), lambda rank: rank.astype(np.float64))

    def components(self) -> dict[str, Run]:
        return self._both(self._wcc, lambda label: least_members(label.astype(np.int64)))

    def _both(
        self,
        search: Callable[[int], Found],
        answer: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
    ) -> dict[str, Run]:
        """Return the runs of a search; `answer` makes of its values what ours are compared with."""

        def stays(source: int) -> tuple[float, npt.NDArray[Any]]:
            seconds, found = timed(self._finished, search, source)
            return seconds, answer(self._to_host(*found))

        def crosses(source: int) -> tuple[float, npt.NDArray[Any]]:
            seconds, values = timed(lambda: self._to_host(*search(source)))
            return seconds, answer(values)

        return {"cuGraph": stays, "cuGraph, to the host": crosses}

    def _finished(self, search: Callable[[int], Found], source: int) -> Found:
        found = search(source)
        self._cupy.cuda.Device().synchronize()
        return found

    def _to_host(self, vertices: Any, values: Any) -> npt.NDArray[Any]:
        by_vertex = self._cupy.empty_like(values)
        by_vertex[vertices] = values
        return self._cupy.asnumpy(by_vertex)  # type: ignore[no-any-return]

    def _bfs(self, source: int) -> Found:
        sources = self._cupy.asarray([source], dtype=np.int32)
        level, _, vertices = self._library.bfs(
            self._handle, self._graph, sources, not self._lists.directed, -1, True, False
        )
        return vertices, level

    def _sssp(self, source: int) -> Found:
        return self._library.sssp(  # type: ignore[no-any-return]
            self._handle, self._graph, source, np.inf, True, False
        )[:2]

    def _pagerank(self, settings: PageRankSettings, _: int) -> Found:
        nothing = (None,) * 4
        return self._library.pagerank(  # type: ignore[no-any-return]
            self._handle, self._transposed, *nothing, settings.alpha, settings.change,
            settings.max_iter, False,
        )  # fmt: skip

    def _wcc(self, _: int) -> Found:
        return self._library.weakly_connected_components(  # type: ignore[no-any-return]
            self._handle, self._graph, *(None,) * 4, False
        )


def _with_infinity(distance: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    unreached = distance == np.finfo(np.float32).max
    return np.where(unreached, np.inf, distance).astype(np.float64)


def _with_unreached(level: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    return np.where(level == np.iinfo(np.int32).max, np.int32(-1), level)
