"""Timelines of runs: spans made of trace records, as Trace Event Format, SVG, or HTML.

`spans.py` reads the records that `LevelTrace.row()` and the other traces' `row()` return, or the
CSV files made of them. The other modules write spans in one format each.
"""
