"""Timelines of runs: spans made from trace records, as SVG or HTML.

`spans.py` reads the records that the `row()` methods of traces return, or the CSV files made from
them. `rendering.py` draws spans.
"""
