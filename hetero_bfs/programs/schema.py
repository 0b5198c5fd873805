"""Numbers of a program's run that Python and OpenCL C share; state.cl explains them."""

from __future__ import annotations

from enum import IntEnum

from hetero_bfs.devices.opencl.built_programs import Constants
from hetero_bfs.scheduling import program_decision

Word = IntEnum(
    "Word",
    "ITERATION NUM_ACTIVE MODE LISTED EDGES SIDES FAR_LISTED CONVERGED LIMIT PLANNED RECEIVERS "
    "TRACKS SENDS_ALL IS_LAST LEFT UNMET",
    start=0,
)
"""Words of `loop`."""

Mode = IntEnum("Mode", "DONE PUSH PULL SELECT PULL_IN_ORDER", start=0)

Counter = IntEnum(
    "Counter",
    "NEXT_COUNT FAR_COUNT TOUCHED_COUNT HEAVY_COUNT ACTIVE ACTIVE_EDGES SCANNED RECEIVED MORE_LEFT "
    "FRESH LOWEST LOWEST_SENDER",
    start=0,
)

Limit = IntEnum("Limit", "END WIDTH FIRST_COST", start=0)
"""Items of `limits`: the bucket's end and width, then the costs (program_decision.py)."""

Waiting = IntEnum("Waiting", "NOT_LISTED WAITING RUN", start=0)
"""Values of `waiting`: whether a vertex is in FAR; RUN if it is listed there but has run since."""

Side = IntEnum("Side", {"NEXT_BIT": 1, "FAR_BIT": 2})
"""Bits of SIDES."""

Begun = IntEnum("Begun", {"BEGUN": 1, "CHANGED": 2})
"""Bits of `begun`."""

Phase = IntEnum("Phase", "STARTS GATHERS APPLIES", start=0)
"""Phases of a streamed sweep (sweep.cl)."""

RECORD_WIDTH = 4

TOTALS = {"plus": 0.0, "minimum": float("inf"), "maximum": float("-inf")}
"""Operations of totals, and the total of no vertex by each."""

SLOTS = 2
"""Hash-table slots per neighbour-list entry, for counting equal messages."""

HASH_FACTOR = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio; the product with a message gives its slot."""

OPENCL: tuple[Constants, ...] = (
    program_decision.OPENCL, Word, Mode, Counter, Limit, Waiting, Side, Begun, Phase,
    {"RECORD_WIDTH": RECORD_WIDTH, "SLOTS": SLOTS, "HASH_FACTOR": HASH_FACTOR},
)  # fmt: skip
