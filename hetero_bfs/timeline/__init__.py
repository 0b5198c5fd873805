"""Timelines of runs: spans made from trace records, as Trace Event Format, SVG, or HTML.

`spans.py` reads the records that the `row()` methods of traces return, or the CSV files made from
them. The other modules write spans in one format each.
"""
