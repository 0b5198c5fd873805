"""The five checks of Graph500 on all ranks; shares no code with the search.

Each host has the tree of one search in memory that its ranks share: 8 bytes per vertex. Each rank
checks its share of the edges.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.check_report import CheckedSearch, Failure, Validation
from hetero_bfs.graph.edge_source import check_ends, typed_chunks
from hetero_bfs.ranks.host_tree import MET, HostTree, check_edges, find_levels


class RankValidator(HostTree):
    """Validates successive searches; all ranks make the same calls."""

    def validate(self, source: int, parent: npt.NDArray[np.uint32]) -> Validation:
        """Check a search; `parent` has the parents of this rank's old ids, 2**32 - 1 for none.

        Levels come from the parents, so check 2 holds by construction.
        """
        communicator = self._communicator
        self._share_tree(source, parent)
        reached, deepest, failure = self._check_tree(source)
        failures = [one for one in communicator.collect(failure) if one is not None]
        nedge = 0
        if not failures:
            nedge, failure = self._check_edges(source)
            failures = [one for one in communicator.collect(failure) if one is not None]
        # Each host's ranks divide all vertices among them. All ranks together divide the edges.
        totals = np.array([reached, nedge], np.int64)
        communicator.reduce_to_all(totals, "sum")
        depth = np.array([deepest], np.int64)
        communicator.reduce_to_all(depth, "max")
        first = Failure(*min(failures)) if failures else None
        counted_twice = self._input_degree is not None and not self._share.directed
        nedge = int(totals[1]) // (1 + counted_twice)
        reached = int(totals[0]) // communicator.num_hosts
        return CheckedSearch(source, reached, int(depth[0]), first, nedge=nedge).outcome()

    def _check_tree(self, source: int) -> tuple[int, int, tuple[int, int, str] | None]:
        parents = self._parents
        if int(parents[source]) != source + 1:
            detail = f"the source has parent {int(parents[source]) - 1} instead of itself"
            return 0, 0, (1, source, detail)
        found = find_levels(parents, self._levels, self._begin, self._end)
        reached, deepest, wrong = (int(number) for number in found)
        failure = None
        if wrong >= 0:
            failure = 1, wrong, "following its parents does not lead to the source"
        self._communicator.barrier()
        return reached, deepest, failure

    def _check_edges(self, source: int) -> tuple[int, tuple[int, int, str] | None]:
        parents, levels = self._parents, self._levels
        share, communicator = self._share, self._communicator
        nedge, failure = 0, None
        for src, dst in typed_chunks(share):
            check_ends(src, dst, share.num_vertices)
            found = check_edges(src, dst, share.directed, parents, levels)
            edges, half, long = (int(number) for number in found)
            nedge += edges
            if long >= 0:
                u, v = int(src[long]), int(dst[long])
                failure = 3, u, f"edge ({u}, {v}) spans more than one level"
            elif half >= 0 and failure is None:
                u, v = int(src[half]), int(dst[half])
                failure = 4, u, f"edge ({u}, {v}) joins a reached and an unreached vertex"
        communicator.combine_hosts(levels, "max")
        here = slice(self._begin, self._end)
        child = self._begin + np.flatnonzero((parents[here] > 0) & (levels[here] < MET))
        child = child[child != source]
        if failure is None and child.size:
            unmet = int(child[0])
            detail = f"its tree edge ({int(parents[unmet]) - 1}, {unmet}) is not an input edge"
            failure = 5, unmet, detail
        degree = self._input_degree
        if degree is not None:
            mine = levels[communicator.rank :: communicator.size]
            nedge = int(degree.sum(where=mine > 0, dtype=np.int64))
        return nedge, failure
