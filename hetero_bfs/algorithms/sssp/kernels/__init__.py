"""Kernels of shortest paths. Matching files for Numba (.py) and OpenCL (.cl) share a stem."""
