"""A vertex program in one launch, for GPUs whose work-groups make progress at the same time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hetero_bfs.devices.opencl.device_run import PATIENCE, Grid
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel
from hetero_bfs.errors import DeviceError, GridStalledError
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs.device import DeviceProgram
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.placed import Run
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.schema import Word
from hetero_bfs.programs.streamed import program_in_phases

_ITERATIONS = np.uint32(1 << 10)
"""Iterations of a launch; after it the host may end a run that does not terminate."""

_NO, _YES, _ENTERED = np.uint32(0), np.uint32(1), np.uint32(2)


class OneLaunch(DeviceProgram):
    """As `DeviceProgram`, with one launch for up to 1,024 iterations.

    Raises
    ------
    DeviceError
        Work-groups do not make progress at the same time; or as `DeviceProgram` raises.
    """

    files = ("devices/opencl/grid.cl", *DeviceProgram.files)
    flags: ClassVar = ("ONE_LAUNCH",)
    _instead: DeviceProgram | None = None

    def _bind(self) -> None:
        """Set the kernel's arguments, and find the grid."""
        self._grid = Grid(self.device, self.GROUPS_PER_UNIT)
        self._iterate: BoundKernel | None = self.device.bind(
            self._program, "run_iterations", *self.forward(), *self._lists(-1), *self.arrays(),
            self._records, np.uint32(device_run._MOST_RECORDS), *self._grid.arguments,
            VARIES, VARIES, VARIES, VARIES,
        )  # fmt: skip
        self._batch = self._most_batch = 1
        groups = self._grid.largest(self._probe)
        if groups is None:
            raise DeviceError(f"{self.device_name} does not run its work-groups together")
        self.groups = groups

    def _probe(self, groups: int, patience: np.uint32) -> bool:
        """Launch the probe of grid.cl; tell whether it ended."""
        assert self._iterate is not None
        group = self.group
        self._iterate.launch(groups * group, group, patience, _YES, _NO, _ITERATIONS)
        loop = self.read(self.shared["loop"], len(Word), np.int64)
        return bool(loop[Word.CONVERGED] == 0)

    def run(self, plan: Plan, limits: Limits) -> Run:
        """Run with the parameters of `plan`; in launches for each phase after a stalled grid."""
        if self._instead is None:
            try:
                return super().run(plan, limits)
            except GridStalledError:
                self.after_stall()
        return self.current.run(plan, limits)

    def start(self, plan: Plan, limits: Limits) -> int:
        """Write the inputs of a run; see `DeviceProgram`."""
        self._iterations = np.uint32(1) if limits.clocked else _ITERATIONS
        return super().start(plan, limits)

    @property
    def current(self) -> DeviceProgram:
        """The program to run: this one, or that of launches for each phase."""
        return self._instead or self

    def after_stall(self) -> None:
        """Use a launch for each phase from now on."""
        self.shared, self.state.buffers, self._records, self._iterate = {}, {}, None, None
        self._instead = program_in_phases(self.plan, self.device, self.graph, self._costs)

    def launch_start(self) -> None:
        """Have the next launch make the initial states."""
        self._begins = _YES

    def launch_entry(self) -> None:
        """Have the next launch decide on its first iteration; see `DeviceProgram`."""
        self._begins = _ENTERED

    def _launch_iteration(self) -> None:
        """Queue a launch of many iterations."""
        assert self._iterate is not None
        self.launch_all(self._iterate, PATIENCE, _NO, self._begins, self._iterations)
        self._begins = _NO
