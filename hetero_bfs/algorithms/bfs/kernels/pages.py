"""Compiled loops of the host for a device that streams edges (stream.cl)."""

from __future__ import annotations

import numpy as np
from numba import prange

from hetero_bfs.support.compiling import kernel

_ONE = np.uint32(1)
_BY_ONE_THREAD = 128
"""Maximum number of pages for which a parallel region costs more than it saves."""


@kernel(counted=False, inner=True)
def _gather_page(i, page, shift, edges, gathered):
    begin = np.int64(page) << shift
    target = np.int64(i) << shift
    for k in range(min(np.int64(1) << shift, edges.size - begin)):
        gathered[target + k] = edges[begin + k]


@kernel(parallel=True)
def _gather_pages(pages, shift, edges, gathered):
    for i in prange(pages.size):
        _gather_page(i, pages[i], shift, edges, gathered)


@kernel
def gather_pages(pages, shift, edges, gathered):
    """Copy these pages of 2**shift edges one after another, then their numbers; all uint32."""
    if pages.size <= _BY_ONE_THREAD:
        for i in range(pages.size):
            _gather_page(i, pages[i], shift, edges, gathered)
    else:
        _gather_pages(pages, shift, edges, gathered)
    end = np.int64(pages.size) << shift
    for i in range(pages.size):
        gathered[end + i] = pages[i]


@kernel
def mark_vertices(vertices, bitmap):
    """Set a bitmap (level.py) to exactly these vertices."""
    bitmap[:] = np.uint32(0)
    for v in vertices:
        bitmap[v >> np.uint32(5)] |= _ONE << (v & np.uint32(31))
