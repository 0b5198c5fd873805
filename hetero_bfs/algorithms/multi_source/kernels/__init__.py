"""Kernels of searches side by side, for the CPU and for OpenCL devices."""
