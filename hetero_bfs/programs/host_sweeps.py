"""A vertex program on the host's cores, in sweeps over an arranged graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetero_bfs.programs.arranged import ArrangedGraph
from hetero_bfs.programs.host import HostProgram
from hetero_bfs.programs.placed import Record
from hetero_bfs.support.memory import aligned_empty


class HostSweeps(HostProgram):
    """A `HostProgram` for an arranged graph, with the kernels of sweep_loop.py and sweep.py."""

    graph: ArrangedGraph
    _kernels = "sweep"

    def _common_fields(self) -> dict[str, Any]:
        """Return the fields that all programs share; sweep_loop.py declares them."""
        from hetero_bfs.programs.kernels.sweep_loop import CHUNK, NUM_TASKS

        n, totals = self.graph.num_vertices, max(len(self.plan.totals), 1)
        self._words = aligned_empty(-(-n // 8), np.uint64)
        return {
            "threads": self.threads,
            "num_vertices": n,
            "num_totals": len(self.plan.totals),
            "all_active": int(self.plan.all_active),
            "parts": self.graph.parts,
            "dirty": self._words.view(np.uint8),
            "sums": np.zeros((-(-n // CHUNK), totals)),
            "totals": np.zeros(totals),
            "next_totals": np.zeros(totals),
            "loop": np.zeros(16, np.int64),
            "work": np.zeros(NUM_TASKS, np.int64),
        }

    def _own_fields(self) -> dict[str, Any]:
        """Return the other fields; sweep.py declares them."""
        n, stored = self.graph.num_vertices, self.plan.stored_type
        return self._program_fields() | {
            "words": self._words,
            "combined": aligned_empty(n, stored),
            "outgoing": aligned_empty(n if self.plan.prepares else 1, stored),
            "sent": aligned_empty(n, np.uint8),
            "gathered": aligned_empty(n, np.int32),
        }

    @property
    def _loop(self) -> Any:
        from hetero_bfs.programs.kernels.sweep_loop import run_sweeps

        return run_sweeps

    def _set_width(self, width: float) -> None:
        """Do nothing: sweeps have no buckets."""

    def _arguments(self, max_iterations: int) -> tuple[Any, ...]:
        return self.control, self.shared, max_iterations, self.records

    def _records(self, iterations: int, first: int) -> list[Record]:
        return [
            (self.graph.mode, int(vertices), int(edges), seconds)
            for vertices, edges, seconds, *_ in self.records[first:iterations].tolist()
        ]
