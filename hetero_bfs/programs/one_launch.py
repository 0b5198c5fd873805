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
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.renumbered import Run
from hetero_bfs.programs.schema import Word
from hetero_bfs.programs.streamed import program_in_phases

_ITERATIONS = np.uint32(1 << 10)
"""Most iterations of a launch; between launches the host may end a run."""

_NO, _YES, _ENTERED = np.uint32(0), np.uint32(1), np.uint32(2)


class OneLaunch(DeviceProgram):
    """A `DeviceProgram` with one launch for up to 1,024 iterations.

    Raises `DeviceError` also if work-groups do not make progress at the same time.
    """

    files = ("devices/opencl/grid.cl", *DeviceProgram.files)
    flags: ClassVar = ("ONE_LAUNCH",)
    _instead: DeviceProgram | None = None

    def _bind(self) -> None:
        """Bind the kernel, and find the largest grid that makes progress."""
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
        """Launch the probe of grid.cl; return whether all work-groups met."""
        assert self._iterate is not None
        group = self.group
        self._iterate.launch(groups * group, group, patience, _YES, _NO, _ITERATIONS)
        loop = self.read(self.shared["loop"], len(Word), np.int64)
        return bool(loop[Word.CONVERGED] == 0)

    def run(self, plan: Plan, limits: Limits) -> Run:
        """Run with the parameters of `plan`; use one launch per phase if the grid stalls."""
        if self._instead is None:
            try:
                return super().run(plan, limits)
            except GridStalledError:
                self.after_stall()
        return self.current.run(plan, limits)

    def start(self, plan: Plan, limits: Limits) -> int:
        self._iterations = np.uint32(1) if limits.clocked else _ITERATIONS
        return super().start(plan, limits)

    @property
    def current(self) -> DeviceProgram:
        return self._instead or self

    def after_stall(self) -> None:
        """Use one launch per phase from now on."""
        self.shared, self.state.buffers, self._records, self._iterate = {}, {}, None, None
        self._instead = program_in_phases(self.plan, self.device, self.graph, self._costs)

    def launch_start(self) -> None:
        """Make the next launch compute the initial states."""
        self._begins = _YES

    def launch_entry(self) -> None:
        """Make the next launch begin with a decision; see `DeviceProgram.launch_entry`."""
        self._begins = _ENTERED

    def _launch_iteration(self) -> None:
        assert self._iterate is not None
        self.launch_all(self._iterate, PATIENCE, _NO, self._begins, self._iterations)
        self._begins = _NO
