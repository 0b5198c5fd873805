"""The kernels of whole searches on an OpenCL device: compiled, probed, bound and launched.

If all work-groups of a grid make progress at the same time, one launch runs all levels that the
policy keeps on the device. Otherwise each launch runs one step. The host queues as many launches at
once as the previous search needed, and one small read-back returns the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.device_memory import DeviceGraph, SearchMemory
from hetero_bfs.algorithms.bfs.kernels import steps
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.devices.machine import Tuning
from hetero_bfs.devices.opencl.device_run import PATIENCE, DeviceRun, Grid
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel, OpenCLDevice
from hetero_bfs.errors import DeviceError, GridStalledError
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.programs.codegen.device_code import twins
from hetero_bfs.ranks.partition import LINE_SHIFT
from hetero_bfs.scheduling import device_policy, schema
from hetero_bfs.scheduling.device_policy import pack_policy
from hetero_bfs.scheduling.policy import Policy

LOG_ROWS = 4096
"""Maximum number of levels in a report."""

_FIRST_ROWS = 64  # read back with the state; further rows are read if needed
_COOPERATIVE_RESERVE = 4  # a quarter of a work-group's room is for the last list of its share
_ONE_KERNEL = ("step",)
_FIRST_LAUNCH = np.uint32(1), np.uint32(0)  # whether it is the first, and its number
_OWN_WORK_PER_ITEM, _MOST_OWN_WORK = 16, 1 << 17  # edges; of a GPU, of a CPU device
_POLICY_ITEMS = 1024  # room for a schedule of hundreds of stretches
_COUNTED_BITS = 62  # for vertices and edges in the packed counter of one launch
_FIRST_STEPS, _FEWEST_STEPS, _MOST_STEPS = 16, 4, 64  # queued at once


class SearchProgram(DeviceRun):
    """The kernels of one graph's searches, and the memory shared by host and device.

    `edge_bits` are the bits for edges in the packed counter (`counter_edge_bits`). `mask` is the
    bitmap of vertices that all searches with these kernels ignore (bottom_up.cl). `sent` has a
    rank's buffers for messages to other ranks, in the order of `Sent` in top_down.cl, and
    `ranks` the number of ranks.
    """

    files = (
        "algorithms/bfs/kernels/common.cl",
        "algorithms/bfs/kernels/top_down.cl",
        "algorithms/bfs/kernels/bottom_up.cl",
        "scheduling/policy.cl",
        "devices/opencl/grid.cl",
        "algorithms/bfs/kernels/steps.cl",
        "algorithms/bfs/kernels/cooperative.cl",
        "algorithms/bfs/kernels/level_loop.cl",
    )
    constants: ClassVar = (schema.OPENCL, device_policy.OPENCL, steps.OPENCL)

    def __init__(
        self,
        device: OpenCLDevice,
        graph: SearchGraph,
        tuning: Tuning,
        edge_bits: int,
        lists: DeviceGraph,
        memory: SearchMemory,
        mask: Any = None,
        sent: Sequence[Any] = (),
        ranks: int = 0,
    ) -> None:
        super().__init__(device, lists.ways)
        self.group = tuning.group_size
        self._mask = [] if mask is None else [mask]
        self._sent, self._ranks = sent, ranks
        self._graph, self._tuning = graph, tuning
        self._edge_bits, self._lists, self._memory = edge_bits, lists, memory
        self._packed: tuple[Policy, int] | None = None
        self._early: tuple[npt.NDArray[np.uint64], Any] | None = None  # state, policy launched
        self._launches_pending = False  # whether launches were queued and not awaited
        self._steps_to_queue = _FIRST_STEPS
        self._functions = twins(device_policy.FUNCTIONS, **device_policy.KINDS)
        self._check_local_memory()
        make = device.buffer
        self._counters = make(
            steps.NUM_COUNTERS * steps.COUNTER_WORDS
            + 2 * (tuning.cooperative_groups + steps.STATE_WORDS),
            np.uint64,
        )
        report_words = steps.ROWS + LOG_ROWS * steps.ROW_WORDS
        self._report = make(report_words, np.uint64)
        self._read = device.host_array(report_words, np.uint64)
        self._read[:] = 0
        self._words = np.zeros(steps.STATE_WORDS, np.uint64)
        self.groups = tuning.groups_per_unit * device.info.compute_units
        self._grid = Grid(device, tuning.groups_per_unit)
        self._clear_counts()
        self._policy, self._policy_items = make(_POLICY_ITEMS, np.float32), _POLICY_ITEMS
        self._policy_sent: Any = None  # an event; without it pyopencl would wait for the copy
        self.one_launch = self._find_grid()
        if not self.one_launch:
            self._program, self._steps = self._build_steps()
        self.groups = self._useful_groups()
        self._bind_search()

    def bind(self, name: str, *arguments: Any) -> BoundKernel:
        return self.device.bind(self._program, name, *arguments)

    def start_early(self, source: int, chosen: int, frontier: Frontier, limit: int) -> None:
        """Launch a search before `run` is called for it; only if one launch runs all levels.

        The host does its bookkeeping while the device works.
        """
        if frontier.is_over or limit == 0:
            return
        self._memory.acquire()
        self.discard_launches()
        limit = min(limit, LOG_ROWS)
        steps.write_state(frontier.state, source, limit, steps.INVALIDATES, self._words)
        self._words[schema.CHOSEN] = chosen
        self._launches_pending = True
        self.launch_all(self._kernels[0], self._words, *_FIRST_LAUNCH)
        self._early = self._words.copy(), self._packed

    def _build_steps(self) -> tuple[Any, tuple[str, ...]]:
        """Return the program that runs one step per launch, and the names of its kernels.

        A GPU has one kernel if its compiler can translate it; a CPU device has three.
        """
        if self.device.info.type == "GPU":
            with suppress(DeviceError):
                return self._build(ONE_STEP=True), _ONE_KERNEL
        return self._build(), ("other_step", "push_step", "pull_step")

    def _check_local_memory(self) -> None:
        limit = self.device.info.local_memory_bytes
        needed = self._tuning.local_bytes(np.dtype(self.offset_type).itemsize)
        if needed > limit:
            raise DeviceError(
                f"the tuning for {self.device.info.name} needs {needed} bytes of local memory; "
                f"the device has {limit}; train again, or give a tuning of smaller groups"
            )

    def _build(self, **form: bool) -> Any:
        tuning = self._tuning
        limits_registers = tuning.registers and self.device.is_nvidia
        return self.build(
            self._functions + self._lists.macros(),
            [f"-cl-nv-maxrregcount={tuning.registers}"] if limits_registers else [],
            ITEMS=tuning.edges_per_item,
            VERTICES_PER_ITEM=tuning.vertices_per_item,
            CACHED_WORDS=tuning.cached_words,
            **self._cooperative_options(),
            **self._sharing_options(),
            EDGE_BITS=self._edge_bits,
            LOG_ROWS=LOG_ROWS,
            **self._lists.options(),
            MASKED=bool(self._mask),
            **({"RANKS": self._ranks, "LINE_SHIFT": LINE_SHIFT} if self._sent else {}),
            **form,
        )

    def _cooperative_options(self) -> dict[str, int]:
        """Return the options of cooperative.cl: how many work-groups share a small frontier.

        If neighbour lists are short, the work-groups get nearly equal shares of the edges, so
        several work-groups form a cooperative subset. Otherwise a single work-group runs the level.
        A rank launches each level separately, and all work-groups share any frontier.
        """
        room, size = self._tuning.single_group_edges, self._tuning.cooperative_groups
        if self._sent:
            none = {"SINGLE_GROUP_EDGES": 0, "COOPERATIVE_GROUPS": 1, "COOPERATIVE_EDGES": 0}
            return {"ROOM": room, **none}
        longest = int(self._graph.degree.max(initial=0))
        short = longest <= room // _COOPERATIVE_RESERVE and size <= self.device.info.compute_units
        return {
            "ROOM": room,
            "SINGLE_GROUP_EDGES": min(room, self.group) if short else room,
            "COOPERATIVE_GROUPS": size if short else 1,
            "COOPERATIVE_EDGES": size * (room - room // _COOPERATIVE_RESERVE) if short else 0,
        }

    def _sharing_options(self) -> dict[str, int | str]:
        """Return the options of bottom_up.cl: how work-groups share long lists.

        A GPU's work-groups read a list slowly, but there are many, and work-items that read
        together read fast. On a CPU device a step for the rests of lists takes two launches, and a
        work-item reads a list fast.
        """
        if self.device.info.type == "GPU":
            work = _OWN_WORK_PER_ITEM * self.group
            return {"TEAM": 32, "SHORT_LIST": 32, "MOST_OWN_WORK": work}
        return {"TEAM": 1, "SHORT_LIST": "LONG_LIST", "MOST_OWN_WORK": _MOST_OWN_WORK}

    def _clear_counts(self) -> None:
        self._grid.clear()
        self.device.fill(self._counters, 0)

    def _find_grid(self) -> bool:
        """Find the largest grid whose work-groups all make progress; False if there is none.

        The kernel of whole searches is probed, since it decides how many work-groups fit. There is
        no grid if the compiler cannot translate that kernel.
        """
        if not self._tuning.one_launch or not self.device.info.may_run_in_one_launch:
            return False  # a CPU device runs work-groups one after another
        if self._edge_bits + self._graph.num_searched.bit_length() > _COUNTED_BITS:
            return False  # the packed counter has no bit left for HAS_REST (common.cl)
        try:
            self._program = self._build(ONE_LAUNCH=True)
        except DeviceError:
            return False
        self.one_launch = True
        most = self.groups
        groups = self._grid.largest(self._probe)
        self.groups = groups or most
        return groups is not None

    def _useful_groups(self) -> int:
        """Return how many of the work-groups that fit get a tile of the graph.

        Further work-groups would only slow down barriers and launches.
        """
        units = self.device.info.compute_units
        tile = self.group * self._tuning.vertices_per_item
        wanted = -(-self._graph.num_searched // (tile * units)) * units
        return min(max(wanted, units), self.groups)

    def _probe(self, groups: int, patience: np.uint32) -> bool:
        self.groups = groups
        self._bind_search(patience)
        self._words[:] = 0
        self._words[steps.FLAGS] = steps.PROBES
        self.launch_all(self._kernels[0], self._words, *_FIRST_LAUNCH)
        passed = self._read_state(1)[steps.STATUS] == steps.ENDED
        self.device.fill(self._counters, 0)
        self._words[:] = 0
        return bool(passed)

    def load_policy(self, policy: Policy, interval: int, place: int) -> None:
        """Send a policy to the device at this place, unless the device has it already.

        The next launch waits for the copy; the host does not.
        """
        if self._packed is not None and self._packed[0] is policy and self._packed[1] == interval:
            return
        graph = self._graph
        packed = pack_policy(
            policy, graph.num_searched, graph.graph.num_stored_edges, interval, place
        )
        if packed.size > self._policy_items:
            self._policy_items = 2 * packed.size
            self._policy = self.device.buffer(self._policy_items, packed.dtype)
            self._bind_search()
        self._packed = None  # until the copy is queued
        self._policy_sent = self.device.send(self.device.queue, self._policy, packed)
        self._packed = (policy, interval)

    def _bind_search(self, patience: np.uint32 = PATIENCE) -> None:
        arguments = [
            *self._lists.arguments, *self._mask, *self._sent, *self._memory.arguments,
            self._policy, self._counters, self._report, VARIES, VARIES, VARIES,
        ]  # fmt: skip
        if self.one_launch:
            self._kernels = [self.bind("search", *arguments, *self._grid.arguments, patience)]
        else:
            self._kernels = [self.bind(name, *arguments) for name in self._steps]

    def discard_launches(self) -> None:
        """Discard launches that were not awaited, as after an interrupt, and clear their counts."""
        self._early = None
        if self._launches_pending:
            self.device.finish()
            self._clear_counts()
            self._launches_pending = False

    def rows(self, first: int, levels: int) -> npt.NDArray[np.uint64]:
        """Return the report's rows of these levels; usually they have been read already."""
        rows = self._read[steps.ROWS :].reshape(LOG_ROWS, steps.ROW_WORDS)
        begin = first % LOG_ROWS
        end = begin + levels
        if end > LOG_ROWS:
            self.device.read(self._read, self._report)
            return np.concatenate((rows[begin:], rows[: end - LOG_ROWS]))
        if end > _FIRST_ROWS:
            row_bytes = 8 * steps.ROW_WORDS
            self.device.read(rows[begin:end], self._report, 8 * steps.ROWS + begin * row_bytes)
        return rows[begin:end]

    def run(
        self, policy: Policy, source: int, limit: int, flags: int, frontier: Frontier
    ) -> npt.NDArray[np.uint64]:
        """Run by the loaded policy until the device has nothing left to do; return its state."""
        steps.write_state(frontier.state, source, limit, flags, self._words)
        early, self._early = self._early, None
        is_launched = early and early[1] is self._packed and np.array_equal(early[0], self._words)
        if not is_launched:
            self.discard_launches()
        launches = int(bool(is_launched))
        self._launches_pending = True
        levels = limit - frontier.level
        top_down = policy.top_down[frontier.chosen]
        step = steps.PUSH if top_down else steps.PULL
        if source != NO_VERTEX or (top_down and not frontier.has_queue):
            step = steps.TO_QUEUE
        kernels = [] if launches else self._next_kernels(step, levels)
        while True:
            for kernel in kernels:
                first, number = np.uint32(launches == 0), np.uint32(launches)
                self.launch_all(kernel, self._words, first, number)
                launches += 1
            state = self._read_state(launches)
            if state[steps.STATUS] == steps.FAILED:
                self._give_up_one_launch()
            if state[steps.STATUS] != steps.RUNNING and not state[steps.PENDING]:
                if source != NO_VERTEX and not self.one_launch:
                    count = 1 + int(state[steps.DONE] - self._words[steps.DONE])
                    self._steps_to_queue = min(max(count, _FEWEST_STEPS), _MOST_STEPS)
                self._words[steps.DONE] = state[steps.DONE]
                self._launches_pending = False
                return state
            kernels = self._next_kernels(int(state[steps.STEP]), levels)

    def _next_kernels(self, step: int, levels: int) -> list[BoundKernel]:
        """Return the kernels to queue, beginning with this step; at most `levels` levels are left.

        A GPU that cannot run all levels in one launch gets a launch for each possible step;
        superfluous launches end at once. On a CPU device a launch costs more than reading back. It
        gets only the launch of this step, and one that decides the next step.
        """
        if self.one_launch:
            return self._kernels
        if self.device.info.type == "GPU":
            # Each level may need a conversion; three more steps begin, end and report.
            most = 2 * levels + 3
            return self._kernels * min(self._steps_to_queue, most)
        other, push, pull = self._kernels
        first = {steps.PUSH: push, steps.PULL: pull, steps.PULL_REST: pull}
        return [first.get(step, other), other]

    def _read_state(self, launches: int) -> npt.NDArray[np.uint64]:
        head = self._read[: steps.ROWS + _FIRST_ROWS * steps.ROW_WORDS]
        self.device.read(head, self._report)
        slot = launches % 2 * steps.STATE_WORDS
        return head[slot : slot + steps.STATE_WORDS]

    def _give_up_one_launch(self) -> None:
        """Run one step per launch from now on; the unfinished search must restart."""
        self.discard_launches()
        self.one_launch = False
        self._program, self._steps = self._build_steps()
        self._bind_search()
        raise GridStalledError(f"{self.device.info.name} did not run its work-groups together")
