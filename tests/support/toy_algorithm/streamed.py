"""Busy neighbours as a vertex program: for lists that stream, and for several ranks."""

from __future__ import annotations

import numpy as np

from hetero_bfs.programs.device_forms import StreamedBuiltIn
from hetero_bfs.programs.program import Program, plus
from toy_algorithm.host import Counted


class Busy(Program):
    """One iteration in which busy vertices send 1."""

    state = {"count": np.int32}  # noqa: RUF012
    combine = plus
    all_active = True

    def initial(self):
        return 0

    def message(self, degree, least):
        return 1 if degree >= least else 0

    def apply(self, combined):
        return combined


class StreamedCount(StreamedBuiltIn):
    """Counts on a device that lacks the room for the lists."""

    def run(self, least: int) -> Counted:
        run = self.run_program(Busy(), {"least": least}, 1)
        count = run.state["count"][: self.graph.num_searched]
        return Counted(count, "device pull", run.streamed_bytes)
