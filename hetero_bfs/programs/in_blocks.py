"""A vertex program on an OpenCL device that holds some blocks of the lists; others are sent."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from hetero_bfs.devices.opencl.streaming.block_lists import Blocks
from hetero_bfs.devices.opencl.streaming.block_memory import BlockMemory
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.programs.device import DeviceProgram
from hetero_bfs.programs.lists import NEED
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.placed import weights_of
from hetero_bfs.programs.plan import Plan


class InBlocks(DeviceProgram):
    """As `DeviceProgram`, with lists in a `BlockMemory`. A subclass drops kernels bound to its
    buffers.

    Raises
    ------
    BudgetError
        The device cannot hold the vertices' arrays and room for a few blocks.
    DeviceError
        As `DeviceProgram` does.
    """

    memory: BlockMemory
    _kernels_of: dict[Any, Any]
    """Kernels whose arguments are buffers of the memory."""

    def _cut_lists(
        self, lists: list[CSRGraph], firsts: npt.NDArray[Any], array_bytes: list[int]
    ) -> None:
        """Choose the resident blocks of the lists beside `indptr` and arrays of these sizes."""
        weighted = self.plan.uses_weights
        self.memory = BlockMemory(
            self.device,
            self.lists.streams,
            NEED,
            [
                Blocks(
                    way.indptr,
                    [way.indices, weights_of(way, True)] if weighted else [way.indices],
                    firsts,
                )
                for way in lists
            ],
            [*array_bytes, *self._offset_bytes()],
            self._entry_bytes,
            self._slot_bytes,
            self._kernels_of.clear,
        )

    def start(self, plan: Plan, limits: Limits) -> int:
        """Write the inputs of a run, as `DeviceProgram` does; take the memory for lists."""
        self.memory.take()
        return super().start(plan, limits)

    @property
    def bytes_sent(self) -> int:
        """Bytes of blocks sent since the program took its memory."""
        return self.memory.bytes_sent
