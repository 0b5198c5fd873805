"""Searches on an OpenCL device: their state, and the loop over levels that runs there (level_loop.cl).

Where the device is known to run a grid's work-groups together, one launch runs all levels that
the policy keeps there; elsewhere each launch runs one step, as many launches are queued at once as
the search before needed, and one small read-back says where the search stands.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.cpu_executor import CPUSearcher
from hetero_bfs.algorithms.bfs.result import Found, Frontier
from hetero_bfs.devices.opencl.driver import VARIES, BoundKernel, OpenCLDevice
from hetero_bfs.devices.opencl.graph_buffers import DeviceGraph
from hetero_bfs.devices.opencl.tuning import Tuning, default_tuning
from hetero_bfs.errors import DeviceError, GridStalledError
from hetero_bfs.graph.build import SearchGraph
from hetero_bfs.graph.csr import NO_VERTEX
from hetero_bfs.selection import schema as layout
from hetero_bfs.selection.policy import Policy, fixed_policy, pack_policy
from hetero_bfs.selection.strategies import STRATEGIES, DeviceKind, Strategy

_LOG_ROWS = 4096
_FIRST_ROWS = 64  # read back with the state; more only if there are more
_GAVE_UP = 2048  # word of `sync` in grid.cl, the last one
_NUM_COUNTERS = 3
_SQUAD_RESERVE = 4  # a quarter of a work-group's room is for a list that its share ends in
_PATIENCE = 1 << 22  # polls: seconds, while one work-group may run many levels alone
_PROBE_PATIENCE = 1 << 15
_ONE_KERNEL = ("step",)
_POLICY_ITEMS = 1024  # room for a schedule of hundreds of levels
_FIRST_STEPS, _FEWEST_STEPS, _MOST_STEPS = 16, 4, 64  # queued at once


class OpenCLSearcher:
    """Runs levels on an OpenCL device.

    On unified memory the state is the host's own arrays, mapped and unmapped as the search goes
    back and forth; else the device has its own, and `receive` and `send` move the frontier.
    """

    kind: DeviceKind = "device"
    ended_at: float | None = None
    """The clock when `run_levels` knew that the device was done; its records come after that."""

    def __init__(
        self,
        device: OpenCLDevice,
        graph: SearchGraph,
        host: CPUSearcher,
        max_alloc_bytes: int | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self.device = device
        self.graph = graph
        self.host = host
        self.tuning = (tuning or default_tuning(device.info.type)).for_graph(graph.num_searched)
        self.unified = device.info.unified_memory
        self.edge_bits = host.edge_bits
        self.on_device = self._upload(max_alloc_bytes)
        self._make_state()
        self._mappings: list[Any] = []
        self._packed: tuple[Policy, int] | None = None
        self._alone: dict[Strategy, Policy] = {}
        self._early: tuple[npt.NDArray[np.uint64], Any] | None = None  # state, policy launched
        self._unsettled = False  # launches are under way whose end was not read yet
        self._usual_steps = _FIRST_STEPS

    # Setting up.

    def _upload(self, max_alloc_bytes: int | None) -> DeviceGraph:
        return DeviceGraph(self.device, self.graph, max_alloc_bytes)

    @property
    def num_parts(self) -> int:
        """Parts of the edge array."""
        return len(self.on_device.partition.parts)

    def _make_state(self) -> None:
        n = self.graph.num_searched
        if self.unified:
            share = self.device.share
            self._parent = share(self.host.parent)
            self._visited = [share(array) for array in self.host.visited]
            self._queue = [share(array) for array in self.host.queue]
            self._offsets = [share(array) for array in self.host.offsets]
        else:
            make = self.device.buffer
            self._parent = make(n, np.uint32)
            self._visited = [make(-(-n // 32), np.uint32) for _ in range(2)]
            self._queue = [make(n, np.uint32) for _ in range(2)]
            self._offsets = [make(n, self.on_device.offset_type) for _ in range(2)]

    def build_kernels(self) -> None:
        """Compile the kernels for this graph's offsets and parts; drivers keep them on disk."""
        from hetero_bfs.algorithms.bfs.kernels import steps as report

        self._report_module = report
        self._check_local_memory()
        make = self.device.buffer
        self._counters = make(
            _NUM_COUNTERS + 2 * (self.tuning.squad_groups + report.STATE_WORDS), np.uint64
        )
        self._report = make(report.ROWS + _LOG_ROWS * report.ROW_WORDS, np.uint64)
        self._read = self.device.host_array(report.ROWS + _LOG_ROWS * report.ROW_WORDS, np.uint64)
        self._read[:] = 0
        self._words = np.zeros(report.STATE_WORDS, np.uint64)
        self.groups = self.tuning.groups_per_unit * self.device.info.compute_units
        self._sync = make(_GAVE_UP + 1, np.uint32)
        self._clear_sync()
        self._policy = make(_POLICY_ITEMS, np.float32)
        self.one_launch = self._find_grid()
        if not self.one_launch:
            self._program, self._steps = self._build_steps()
        self.groups = self._useful_groups()
        self._bind_search()
        self._scatter = self.device.bind(
            self._program, "scatter_parents", VARIES, self._queue[0], self._queue[1], self._parent
        )

    def _build_steps(self) -> tuple[Any, tuple[str, ...]]:
        """Return the program for one step a launch, and the names of its kernels.

        One kernel on a GPU, if its compiler can translate it; a processor has three.
        """
        if self.device.info.type == "GPU":
            with suppress(DeviceError):
                return self._build("-DONE_STEP"), _ONE_KERNEL
        return self._build(), ("other_step", "push_step", "pull_step")

    def _check_local_memory(self) -> None:
        """Refuse a tuning whose work-groups need more local memory than the device has."""
        limit = self.device.info.local_memory_bytes
        needed = self.tuning.local_bytes(np.dtype(self.on_device.offset_type).itemsize)
        if needed > limit:
            raise DeviceError(
                f"the tuning for {self.device.info.name} needs {needed} bytes of local memory; the "
                f"device has {limit}; train again, or give a tuning of smaller groups"
            )

    def _build(self, *extra: str) -> Any:
        tuning = self.tuning
        options = [
            f"-DGROUP={tuning.group_size}",
            f"-DITEMS={tuning.edges_per_item}",
            f"-DVERTICES_PER_ITEM={tuning.vertices_per_item}",
            f"-DCACHED_WORDS={tuning.cached_words}",
            *self._squad_options(),
            f"-DEDGE_BITS={self.edge_bits}",
            f"-DLOG_ROWS={_LOG_ROWS}",
            *self.on_device.options(),
        ]
        if tuning.registers and self.device.is_nvidia:
            options.append(f"-cl-nv-maxrregcount={tuning.registers}")
        return self.device.build([*options, *extra])

    def _squad_options(self) -> list[str]:
        """Return what squad.cl needs to know: work-groups that keep a small frontier.

        Where lists are short a share of the frontier's edges never is much more than its part, so
        that several can share one; else one runs alone.
        """
        room, size = self.tuning.alone_edges, self.tuning.squad_groups
        longest = int(self.graph.degree.max(initial=0))
        short = longest <= room // _SQUAD_RESERVE and size <= self.device.info.compute_units
        return [
            f"-DROOM={room}",
            f"-DALONE_EDGES={min(room, self.tuning.group_size) if short else room}",
            f"-DSQUAD_GROUPS={size if short else 1}",
            f"-DSQUAD_EDGES={size * (room - room // _SQUAD_RESERVE) if short else 0}",
        ]

    def _clear_sync(self) -> None:
        self.device.fill(self._sync, 0)
        self.device.fill(self._counters, 0)

    def _find_grid(self) -> bool:
        """Find the largest grid that makes progress together; False if there is none.

        It is probed with the kernel that needs it, since that decides how many work-groups fit. A
        compiler that cannot translate that kernel has none either.
        """
        if not self.tuning.one_launch or self.device.info.type != "GPU":
            return False  # a processor runs work-groups one after another
        try:
            self._program, self._steps = self._build("-DONE_LAUNCH"), _ONE_KERNEL
        except DeviceError:
            return False
        units = self.device.info.compute_units
        self._cells = self.device.buffer(self.tuning.groups_per_unit * units, np.uint32)
        self.one_launch = True
        self._bind_search(_PROBE_PATIENCE)
        for per_unit in range(self.tuning.groups_per_unit, 0, -1):
            self.groups = per_unit * units
            if self._probe():
                return True
        self.groups = self.tuning.groups_per_unit * units
        return False

    def _useful_groups(self) -> int:
        """Return how many of the work-groups that fit have a tile of the graph to work on.

        The others would only make barriers and launches slower.
        """
        tuning, units = self.tuning, self.device.info.compute_units
        tile = tuning.group_size * tuning.vertices_per_item
        wanted = -(-self.graph.num_searched // (tile * units)) * units
        return min(max(wanted, units), self.groups)

    def _probe(self) -> bool:
        """Tell whether a grid's work-groups wait for each other and see each other's writes."""
        report = self._report_module
        self._words[:] = 0
        self._words[report.FLAGS] = report.PROBES
        self._enqueue(self._kernels[0], 0)
        passed = self._read_state(1)[report.STATUS] == report.ENDED
        sync = np.zeros(_GAVE_UP + 1, np.uint32)
        self.device.read(sync, self._sync)
        self._clear_sync()
        self._words[:] = 0
        return bool(passed and not sync[_GAVE_UP])

    def load_policy(self, policy: Policy, interval: int) -> None:
        """Hand the device another policy, if it is another one."""
        if self._packed is not None and self._packed[0] is policy and self._packed[1] == interval:
            return
        graph = self.graph
        packed = pack_policy(policy, graph.num_searched, graph.graph.num_stored_edges, interval)
        if packed.nbytes > self._policy.size:
            self._policy = self.device.buffer(2 * packed.size, packed.dtype)
            self._bind_search()
        self._packed = None  # until it is there
        self.device.write(self._policy, packed)
        self._packed = (policy, interval)

    def _bind_search(self, patience: int = _PATIENCE) -> None:
        arguments = [
            *self.on_device.arguments, self._parent, *self._visited, *self._queue, *self._offsets,
            self._policy, self._counters, self._report, VARIES, VARIES, VARIES,
        ]  # fmt: skip
        bind = self.device.bind
        if self.one_launch:
            arguments += [self._sync, self._cells, np.uint32(patience)]
            self._kernels = [bind(self._program, "search", *arguments)]
        else:
            self._kernels = [bind(self._program, name, *arguments) for name in self._steps]

    # One search.

    def begin(self, root: int, frontier: Frontier) -> None:
        """Make `root` (a new id) the only visited vertex and the frontier."""
        self.acquire()
        self._launch(self._alone_policy(STRATEGIES["TG"]), root, 0, 0, frontier)

    def clear(self, frontier: Frontier) -> None:
        """Forget the last search: no vertex is visited, none has a parent."""
        self.acquire()
        self.device.fill(self._parent, 0xFF)
        self.device.fill(self._visited[frontier.visited_index], 0)

    def to_queue(self, frontier: Frontier) -> float:
        """Turn a frontier that bottom-up left as a bitmap into a queue; returns seconds.

        They are the device's, launch and read-back excluded, if it has a clock.
        """
        report = self._report_module
        started = time.perf_counter()
        frontier.state[layout.CHOSEN] = 0
        policy = self._alone_policy(STRATEGIES["TG"])
        limit = frontier.level + 1
        state = self._launch(policy, NO_VERTEX, limit, report.CONVERTS, frontier)
        frontier.state[layout.CHOSEN] = -1
        frontier.became_queue(
            Found(int(state[layout.FRONTIER_VERTICES]), int(state[layout.FRONTIER_EDGES]))
        )
        if state[report.BEGAN]:
            return 1e-9 * int(state[report.BEGAN] - state[report.DECIDED])
        return time.perf_counter() - started

    def launch_nothing(self, frontier: Frontier) -> None:
        """Launch and read back without a level: what every stay on the device costs."""
        frontier.state[layout.CHOSEN] = 0
        policy = self._alone_policy(STRATEGIES["TG"])
        self._launch(policy, NO_VERTEX, frontier.level, 0, frontier)
        frontier.state[layout.CHOSEN] = -1

    def _alone_policy(self, strategy: Strategy) -> Policy:
        """Return the policy that runs one strategy, and hand it to the device."""
        if strategy not in self._alone:
            self._alone[strategy] = fixed_policy([0], [strategy])
        self.load_policy(self._alone[strategy], 1)
        return self._alone[strategy]

    def run(self, strategy: Strategy, frontier: Frontier) -> tuple[Found, float]:
        """Run one level and move `frontier` on to the next; returns its seconds too.

        For measurements; stale parents stay.
        """
        record = np.zeros((1, layout.record_width(1)))
        policy = self._alone_policy(strategy)
        level = float(frontier.level)
        frontier.state[layout.LEVEL] = frontier.state[layout.CHOSEN] = 0
        self.run_levels(policy, 1, None, frontier, record, 1, forget=False)
        frontier.state[layout.LEVEL] += level
        return Found(frontier.vertices, frontier.edges), float(record[0, layout.SECONDS])

    def start_early(
        self, policy: Policy, interval: int, root: int, chosen: int, frontier: Frontier, limit: int
    ) -> None:
        """Launch a search that `run_levels` is about to be asked for, if one launch runs it all.

        What the host keeps of a search then is written down while the device is at work.
        """
        if not self.one_launch or frontier.is_over or limit == 0:
            return
        report = self._report_module
        self.acquire()
        self.load_policy(policy, interval)
        self._settle()
        limit = min(limit, _LOG_ROWS)
        report.write_state(frontier.state, root, limit, report.FORGETS, self._words)
        self._words[layout.CHOSEN] = chosen
        self._unsettled = True
        self._enqueue(self._kernels[0], 0)
        self._early = self._words.copy(), self._packed

    def _settle(self) -> None:
        """Forget launches that nobody waited for, as after an interrupt; their counts are void."""
        self._early = None
        if self._unsettled:
            self.device.finish()
            self._clear_sync()
            self._unsettled = False

    def _is_launched(self) -> bool:
        """Tell whether `start_early` launched the state in `_words` by the loaded policy."""
        early, self._early = self._early, None
        if early and early[1] is self._packed and np.array_equal(early[0], self._words):
            return True
        self._settle()
        return False

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
        """Run levels as long as the policy keeps the search here; true if it is over.

        The first level's strategy is chosen already; `root` (a new id) is where to start if the
        search has not. With `forget`, no stale parent is left once this returns.
        """
        report = self._report_module
        self.acquire()
        self.load_policy(policy, interval)
        started = time.perf_counter()
        first = frontier.level
        limit = min(limit, records.shape[0], first + _LOG_ROWS)
        start = NO_VERTEX if root is None else root
        flags = report.FORGETS if forget else 0
        state = self._launch(policy, start, limit, flags, frontier)
        self.ended_at = time.perf_counter()
        levels = int(state[layout.LEVEL]) - first
        seconds = self.ended_at - started
        rows = self._rows(first, levels)
        report.read_rows(rows, self.edge_bits, policy.top_down, seconds, frontier.state, records)
        return bool(state[report.STATUS] == report.ENDED and first + levels < limit)

    def _rows(self, first: int, levels: int) -> npt.NDArray[np.uint64]:
        """Return the rows of these levels of the report; most are read already."""
        report = self._report_module
        rows = self._read[report.ROWS :].reshape(_LOG_ROWS, report.ROW_WORDS)
        begin = first % _LOG_ROWS
        end = begin + levels
        if end > _LOG_ROWS:
            self.device.read(self._read, self._report)
            return np.concatenate((rows[begin:], rows[: end - _LOG_ROWS]))
        if end > _FIRST_ROWS:
            row_bytes = 8 * report.ROW_WORDS
            self.device.read(rows[begin:end], self._report, 8 * report.ROWS + begin * row_bytes)
        return rows[begin:end]

    def _launch(
        self, policy: Policy, root: int, limit: int, flags: int, frontier: Frontier
    ) -> npt.NDArray[np.uint64]:
        """Run by the policy that is loaded until the device has no more to do; return its state."""
        report = self._report_module
        report.write_state(frontier.state, root, limit, flags, self._words)
        launches = int(self._is_launched())
        self._unsettled = True
        levels = limit - frontier.level
        kernels = [] if launches else self._first_kernels(policy, root, levels, frontier)
        while True:
            for kernel in kernels:
                self._enqueue(kernel, launches)
                launches += 1
            state = self._read_state(launches)
            if state[report.STATUS] == report.FAILED:
                self._give_up_one_launch()
            if state[report.STATUS] != report.RUNNING and not state[report.PENDING]:
                if root != NO_VERTEX and not self.one_launch:
                    self._note_steps(int(state[report.DONE] - self._words[report.DONE]))
                self._words[report.DONE] = state[report.DONE]
                self._unsettled = False
                return state
            kernels = self._next_kernels(int(state[report.STEP]), levels)

    def _note_steps(self, count: int) -> None:
        """Remember how many steps a search had.

        One more is queued next time, as roots differ; who comes after the end returns at once.
        """
        self._usual_steps = min(max(count + 1, _FEWEST_STEPS), _MOST_STEPS)

    def _first_kernels(
        self, policy: Policy, root: int, levels: int, frontier: Frontier
    ) -> list[BoundKernel]:
        """Return what to queue at first."""
        report = self._report_module
        top_down = policy.top_down[frontier.chosen]
        if root != NO_VERTEX or (top_down and not frontier.has_queue):
            return self._next_kernels(report.TO_QUEUE, levels)
        return self._next_kernels(report.PUSH if top_down else report.PULL, levels)

    def _next_kernels(self, step: int, levels: int) -> list[BoundKernel]:
        """Return what to queue if this is the next step, and no more than so many levels are left.

        A GPU that cannot run all in one launch gets a launch for each step that there may be, and
        those that come too late end at once. Where launches cost more than reading back, as on a
        processor, only the one that is wanted, and one that decides what comes then.
        """
        report = self._report_module
        if self.one_launch:
            return self._kernels
        if self.device.info.type == "GPU":
            # Each level may need a queue first; beginning, ending, and finding out.
            most = 2 * levels + 3
            return self._kernels * min(self._usual_steps, most)
        other, push, pull = self._kernels
        return [{report.PUSH: push, report.PULL: pull}.get(step, other), other]

    def _enqueue(self, kernel: BoundKernel, number: int) -> None:
        """Queue launch `number` since the host last spoke; the first one takes the state along."""
        size = self.tuning.group_size
        kernel.launch(
            self.groups * size, size, self._words, np.uint32(number == 0), np.uint32(number)
        )

    def _read_state(self, launches: int) -> npt.NDArray[np.uint64]:
        """Read the state back, and the first rows, after so many launches."""
        report = self._report_module
        head = self._read[: report.ROWS + _FIRST_ROWS * report.ROW_WORDS]
        self.device.read(head, self._report)
        slot = launches % 2 * report.STATE_WORDS
        return head[slot : slot + report.STATE_WORDS]

    def _give_up_one_launch(self) -> None:
        """Run steps one by one from now on; the search that did not end must begin again."""
        self._settle()
        self.one_launch = False
        self._bind_search()
        raise GridStalledError(f"{self.device.info.name} did not run its work-groups together")

    # Crossing to and from the host.

    def acquire(self) -> None:
        """Give shared memory back to the device after the host used it."""
        for mapping in self._mappings:
            mapping.base.release(self.device.queue)
        self._mappings = []

    def release(self) -> None:
        """Let the host use the shared memory."""
        if self._mappings or not self.unified or self.graph.num_searched == 0:
            return
        host = self.host
        buffers = [self._parent, *self._visited, *self._queue, *self._offsets]
        arrays = [host.parent, *host.visited, *host.queue, *host.offsets]
        self._mappings = [self.device.map(b, a) for b, a in zip(buffers, arrays, strict=True)]
        self.device.finish()

    def receive(self, frontier: Frontier, with_queue: bool) -> None:
        """Take the frontier over from the host."""
        if self.unified:
            self.acquire()
            return
        index, count = frontier.queue_index, frontier.vertices
        self.device.write(
            self._visited[frontier.visited_index], self.host.visited[frontier.visited_index]
        )
        if with_queue:
            offsets = self.host.offsets[index][:count].astype(self.on_device.offset_type)
            self.device.write(self._queue[index], self.host.queue[index][:count])
            self.device.write(self._offsets[index], offsets)

    def send(self, frontier: Frontier, with_queue: bool) -> None:
        """Hand the frontier over to the host."""
        if self.unified:
            self.release()
            return
        index, count = frontier.queue_index, frontier.vertices
        self.device.read(
            self.host.visited[frontier.visited_index], self._visited[frontier.visited_index]
        )
        if with_queue:
            offsets = np.empty(count, self.on_device.offset_type)
            self.device.read(self.host.queue[index][:count], self._queue[index])
            self.device.read(offsets, self._offsets[index])
            self.host.offsets[index][:count] = offsets

    def add_parents(
        self, vertices: npt.NDArray[np.uint32], parents: npt.NDArray[np.uint32]
    ) -> None:
        """Take over parents that the host found, by way of the queues' memory."""
        if vertices.size == 0:
            return
        self.device.write(self._queue[0], vertices)
        self.device.write(self._queue[1], parents)
        size = self.tuning.group_size
        groups = min(-(-vertices.size // size), self.groups)
        self._scatter.launch(groups * size, size, np.uint32(vertices.size))
        self.device.finish()

    def read_visited(self, visited: npt.NDArray[np.uint32], index: int) -> None:
        """Copy one of the two bitmaps of visited vertices to the host."""
        self.device.read(visited, self._visited[index])

    def read_parents(self, parent: npt.NDArray[np.uint32]) -> None:
        """Copy the parents that this device found to the host."""
        self.device.read(parent, self._parent)
