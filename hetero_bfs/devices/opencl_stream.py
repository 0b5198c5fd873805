"""Searches on an OpenCL device that has no room for the edges: they stream through it in parts.

The host runs the loop over levels. Each level finds out on the device which blocks of edges it
needs, reads that back, and has the parts read as they arrive (kernels/stream.cl). BGC runs like
BG: the bus is what bounds both.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.bfs import Found, Frontier
from hetero_bfs.build import SearchGraph
from hetero_bfs.devices.cpu import CPUSearcher, unpack_counter
from hetero_bfs.devices.opencl import STREAM_STEMS, VARIES, BoundKernel, OpenCLDevice
from hetero_bfs.devices.opencl_graph import bytes_in_memory
from hetero_bfs.devices.opencl_search import OpenCLSearcher
from hetero_bfs.devices.opencl_slots import Mask, PartSlots, Piece, Slot
from hetero_bfs.devices.opencl_stream_graph import (
    SEGMENT_EDGES,
    StreamedGraph,
    StreamPlan,
    num_blocks,
    plan_stream,
)
from hetero_bfs.devices.opencl_stream_kernels import LevelArrays, StreamKernels
from hetero_bfs.errors import BudgetError
from hetero_bfs.kernels import level as layout
from hetero_bfs.kernels.policy import Policy
from hetero_bfs.memory import format_bytes
from hetero_bfs.tuning import Tuning

_USABLE_SHARE = 0.9
"""Of the device's memory, where no budget is given: drivers and others need some too."""


@dataclass(frozen=True)
class Streaming:
    """How the edges of a graph stream; sizes in bytes."""

    edge_bytes: int
    parts: int
    part_bytes: int
    resident_parts: int
    budget_bytes: int
    pinned: bool

    def __str__(self) -> str:
        return (
            f"streamed, {format_bytes(self.edge_bytes)} in {self.parts} parts of "
            f"{format_bytes(self.part_bytes)}, room for {self.resident_parts} of them, budget "
            f"{format_bytes(self.budget_bytes)}"
            f"{'' if self.pinned else ', the host having no room to pin them for fast copies'}"
        )

    def to_dict(self) -> dict[str, int | bool]:
        """Return the fields for JSON."""
        return asdict(self)


def open_searcher(
    device: OpenCLDevice,
    graph: SearchGraph,
    host: CPUSearcher,
    max_alloc_bytes: int | None,
    tuning: Tuning | None,
    device_memory_bytes: int | None,
) -> OpenCLSearcher:
    """Return what searches on the device: with the edges there if they fit, else streaming them.

    Raises
    ------
    BudgetError
        Not even what is kept per vertex fits, or nothing can stream as memory is shared.
    SplitError
        `max_alloc_bytes` would cut the edges into too many parts.
    """
    info = device.info
    limit = min(device_memory_bytes or info.memory_bytes, info.memory_bytes)
    needed = bytes_in_memory(info, graph)
    if needed <= limit or graph.num_searched == 0:
        return OpenCLSearcher(device, graph, host, max_alloc_bytes, tuning)
    if info.unified_memory:
        edges = int(graph.graph.num_stored_edges // 2 * limit / needed)
        raise BudgetError(
            f"the graph needs {format_bytes(needed)} on {info.name}, of whose memory "
            f"{format_bytes(limit)} may be used; there is nothing to stream to, since it shares "
            f"the host's memory; a graph of about {edges:,} edges of this kind would fit"
        )
    budget = device_memory_bytes or int(_USABLE_SHARE * info.memory_bytes)
    plan = plan_stream(
        info, graph, min(budget, limit), min(max_alloc_bytes or limit, info.max_alloc_bytes)
    )
    return StreamingSearcher(device, graph, host, plan, tuning)


class StreamingSearcher(OpenCLSearcher):
    """Runs levels on an OpenCL device, with the edges streaming through it.

    Parameters
    ----------
    device, graph, host, tuning
        As for OpenCLSearcher; the device has memory of its own.
    plan : StreamPlan
        Of this device and graph.
    """

    one_launch = False

    def __init__(
        self,
        device: OpenCLDevice,
        graph: SearchGraph,
        host: CPUSearcher,
        plan: StreamPlan,
        tuning: Tuning | None = None,
    ) -> None:
        self.plan = plan
        super().__init__(device, graph, host, None, tuning)

    def _upload(self, max_alloc_bytes: int | None) -> StreamedGraph:
        self._resident = StreamedGraph(self.device, self.graph, self.plan)
        self._slots = PartSlots(self.device, self._resident.edges, self.plan)
        return self._resident

    @property
    def num_parts(self) -> int:
        """Parts of the edge array."""
        return self.plan.num_parts

    @property
    def streaming(self) -> Streaming:
        """How the edges stream."""
        plan = self.plan
        parts = plan.num_parts * len(self._resident.edges)
        return Streaming(
            plan.edge_bytes,
            parts,
            plan.part_bytes,
            plan.num_slots,
            plan.budget_bytes,
            self._resident.pinned,
        )

    @property
    def bytes_streamed(self) -> int:
        """Bytes of edges that were sent to the device so far."""
        return self._slots.bytes_sent

    def build_kernels(self) -> None:
        """Compile the kernels for this graph's offsets."""
        make, graph = self.device.buffer, self._resident
        self.groups = self.tuning.groups_per_unit * self.device.info.compute_units
        self._blocks = num_blocks(self.graph.graph, self.plan.block_shift)
        self._needed_words = np.zeros(-(-self._blocks // 32), np.uint32)
        words = -(-self.graph.num_searched // 32)
        self._arrays = LevelArrays(
            self._parent,
            self._visited,
            self._queue,
            self._offsets,
            frontier=make(words, np.uint32),
            needed=make(self._needed_words.size, np.uint32),
            counter=make(1, np.uint64),
        )
        self._packed_found = np.zeros(1, np.uint64)
        options = [
            f"-DGROUP={self.tuning.group_size}",
            f"-DEDGE_BITS={self.edge_bits}",
            *graph.options(),
        ]
        program = self.device.build(options, STREAM_STEMS)
        self._bound = StreamKernels(self.device, program, graph, self._arrays)
        self._scatter = self.device.bind(
            program, "scatter_parents", VARIES, self._queue[0], self._queue[1], self._parent
        )

    # One search.

    def begin(self, root: int, frontier: Frontier) -> None:
        """Make `root` (a new id) the only visited vertex and the frontier."""
        kernel = self._bound.level("start", frontier.visited_index, frontier.queue_index)
        self._run_all(kernel, np.uint32(root))

    def load_policy(self, policy: Policy, interval: int) -> None:
        """Do nothing: the host chooses every level's strategy."""

    def launch_nothing(self, frontier: Frontier) -> None:
        """Read back without a level."""
        self._read_found()

    def to_queue(self, frontier: Frontier) -> float:
        """Turn a frontier that bottom-up left as a bitmap into a queue; returns seconds."""
        started = time.perf_counter()
        self.device.fill(self._arrays.counter, 0)
        self._run_all(self._bound.level("queue", frontier.visited_index, frontier.queue_index))
        frontier.became_queue(self._read_found())
        return time.perf_counter() - started

    def run_levels(
        self,
        policy: Policy,
        interval: int,
        root: int | None,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
        limit: int,
        forget: bool = True,
    ) -> bool:
        """Run levels as long as the policy keeps the search here; see OpenCLSearcher."""
        started = time.perf_counter()
        limit = min(limit, records.shape[0])
        first = records[frontier.level]
        if root is not None:
            self.begin(root, frontier)
            self.device.finish()
        first[layout.TRANSFER_SECONDS] += time.perf_counter() - started
        while True:
            self._run_level(bool(policy.top_down[frontier.chosen]), frontier, records)
            goes_on = not frontier.is_over and frontier.level < limit
            if goes_on and self._choose(policy, interval, frontier, records):
                continue
            if forget:
                self._run_all(self._bound.level("forget", frontier.visited_index))
                self.device.finish()
            return frontier.is_over

    def _choose(
        self,
        policy: Policy,
        interval: int,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
    ) -> bool:
        """Choose the coming level's strategy; false, and nothing chosen, if it is the host's."""
        from hetero_bfs.kernels.policy import choose_level

        started = time.perf_counter()
        n, m = self.graph.num_searched, self.graph.graph.num_stored_edges
        choose_level(policy, interval, n, m, frontier.state, records)
        records[frontier.level, layout.SELECT_SECONDS] = time.perf_counter() - started
        if policy.kinds[frontier.chosen] == layout.DEVICE:
            return True
        frontier.state[layout.CHOSEN] = -1
        return False

    def _run_level(
        self, top_down: bool, frontier: Frontier, records: npt.NDArray[np.float64]
    ) -> None:
        """Run one level, fill its record, and move the frontier on."""
        started = time.perf_counter()
        record = records[frontier.level]
        self.device.fill(self._arrays.needed, 0)
        self.device.fill(self._arrays.counter, 0)
        found = self._push(frontier) if top_down else self._pull(frontier)
        record[layout.STRATEGY] = frontier.chosen
        record[layout.FOUND_VERTICES] = found.vertices
        record[layout.EXAMINED] = -1
        frontier.kind = "device"
        frontier.advance("top-down" if top_down else "bottom-up", found)
        record[layout.SECONDS] = time.perf_counter() - started

    def _push(self, frontier: Frontier) -> Found:
        """Run a top-down level; the other bitmap gets the visited vertices as they were."""
        v, q = frontier.visited_index, frontier.queue_index
        if frontier.form == "queue":
            self.device.fill(self._arrays.frontier, 0)
            self._run_all(self._bound.level("frontier_of_queue", q=q), np.uint32(frontier.vertices))
        else:
            self._run_all(self._bound.level("frontier_of_bitmap", v))
        self.device.copy(self._visited[1 - v], self._visited[v])
        self._run_all(self._bound.level("mark"))
        self._stream("push", 0, v)
        self._run_all(self._bound.level("queue", v, 1 - q))
        return self._read_found()

    def _pull(self, frontier: Frontier) -> Found:
        """Run a bottom-up level."""
        v, size = frontier.visited_index, self.tuning.group_size
        self._bound.level("first", v).launch(-(-self.graph.num_searched // size) * size, size)
        self._stream("pull", len(self._resident.edges) - 1, v)
        self._run_all(self._bound.level("count", 1 - v))
        return self._read_found()

    def _stream(self, kind: str, direction: int, v: int) -> None:
        """Have the marked blocks read by the kernel of this kind."""
        size = self.tuning.group_size

        def launch(slot: Slot, piece: Piece, after: list[Any]) -> Any:
            segments = -(-(piece.end - piece.begin) // SEGMENT_EDGES)
            kernel = self._bound.part(kind, slot, direction, v)
            offsets = map(np.uint64, (piece.part_begin, piece.begin, piece.end))
            return kernel.launch(-(-segments // size) * size, size, *offsets, after=after)

        self._slots.stream(direction, self._read_needed(), launch)

    def _run_all(self, kernel: BoundKernel, *arguments: Any) -> None:
        """Launch a kernel on as many work-groups as the device runs at once."""
        size = self.tuning.group_size
        kernel.launch(self.groups * size, size, *arguments)

    def _read_needed(self) -> Mask:
        self.device.read(self._needed_words, self._arrays.needed)
        bits = np.unpackbits(self._needed_words.view(np.uint8), bitorder="little")
        return bits[: self._blocks].view(np.bool_)

    def _read_found(self) -> Found:
        self.device.read(self._packed_found, self._arrays.counter)
        return unpack_counter(int(self._packed_found[0]), self.edge_bits)
