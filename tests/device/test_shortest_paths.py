"""Shortest paths on the host and on every OpenCL device, by every way, against SciPy and the check."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from graphs import NASTY
from hypothesis import given, settings
from hypothesis import strategies as st

import hetero_bfs as hb
from hetero_bfs.algorithms.sssp.check_paths import check_paths
from hetero_bfs.algorithms.sssp.lists import Plan
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.path_searches import PathSearches
