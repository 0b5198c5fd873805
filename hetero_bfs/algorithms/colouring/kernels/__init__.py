"""Compute kernels of colouring: Numba (.py) and OpenCL C (.cl)."""
