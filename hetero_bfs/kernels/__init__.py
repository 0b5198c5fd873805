"""Compute kernels: each stem has a Numba side (.py), and where a device runs it too a .cl side."""
