"""Utilities for all other packages: checks, files, memory, progress, compiling."""

from hetero_bfs.support import environment

environment.keep_quota()  # before anything loads Numba
