"""A program's functions and flags for the kernels; host_code.py replaces them for each program.

`arrays` is the struct of a run (host.py). `v` and `u` are vertices in new ids.
"""

from __future__ import annotations

import numpy as np

ALL_ACTIVE = False  # every vertex sends and applies in every iteration
HAS_IDENTITY = True  # `combine` has an identity
IDENTITY = np.int64(0)  # the message that changes no other one; any value if there is none
WEIGHTED = False  # a message depends on the edge's weight
APPLIES_IN_PULLS = False  # a pull reads no other vertex's state, so it may apply messages at once
COUNTS = False  # messages are counted instead of combined
HAS_PRIORITY = False  # vertices of low priority run first
SENDS_BACK = False  # messages go against edges, too, in programs that collect them
ACTIVE_APPLY = False  # active vertices apply without messages
MONOTONE = False  # the program promises monotony (monotone.py)
HAS_FINISHED = False  # the program decides when the run ends

# Functions that each program has, compiled:
#
#     clear_totals(sums)          writes the totals of no vertex
#     start(arrays, v, sums)      writes the initial state of a vertex, and adds to the sums;
#                                 returns whether it is active
#     send(arrays, u, weight)     returns the message of `u` along an edge
#     combine(first, second)
#     is_final(combined)          whether no further message can change `combined`
#     receives(arrays, v)         whether a vertex takes messages
#     takes(arrays, v, message)   whether a vertex takes this message
#     apply(arrays, v, combined, sums)    writes the new state of a vertex, and adds to the sums;
#                                 returns whether it is active
#     collect(arrays, active, v, begin, count, back_begin, back_count)    stores the new state of a
#                                 vertex aside; returns a flag (collected.py)
#     priority(arrays, v)         the priority of a vertex, float64
#     finished(arrays)            whether the run must end
clear_totals = start = send = combine = is_final = receives = takes = apply = collect = None
priority = finished = None
