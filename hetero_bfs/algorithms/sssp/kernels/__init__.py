"""Compute kernels of the search: Numba (.py) and OpenCL (.cl) twins share a stem."""
