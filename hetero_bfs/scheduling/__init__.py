"""Chooses how and where work runs. All choices of strategy, direction, place and exchange lie here.

Each chooser takes features of the next step, compares predicted seconds, and learns from measured
ones:

    policy.py           the level of a search: strategy and place; correction_kernels.py learns
    program_decision.py the iteration of a vertex program: direction and place, learned from
                        whole runs
    rank_decision.py    the level of a search on several ranks: direction for all, place for each
    run_chooser.py      a whole run of any other algorithm: place and mode; a window of shortest
                        paths on a device: whether the host goes on
    engine_opening.py   a call without an engine: one thread, or an engine that opens for it
    window_plan.py      a search for shortest paths: its first strategy, and widths of windows
"""
