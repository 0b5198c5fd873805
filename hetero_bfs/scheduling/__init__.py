"""Chooses how and where work runs. All choices of strategy, direction, place and exchange lie here.

Each chooser takes features of the next step, compares predicted seconds, and learns from measured
ones:

    policy.py               the level of a search: strategy and place; correction.py learns
    program_decision.py     the iteration of a vertex program: direction and place, learned from
                            whole runs
    algorithm_decision.py   shortest paths: first strategy, widths of windows, and whether the host
                            goes on with a device's run; searches from many sources: 64 at once or
                            one by one, and which of the 64 push and pull
    rank_decision.py        the level of a search on several ranks: direction for all, place for
                            each
    run_chooser.py          a whole run of any other algorithm: place and mode; a call without an
                            engine: one thread, or an engine that opens for it
"""
