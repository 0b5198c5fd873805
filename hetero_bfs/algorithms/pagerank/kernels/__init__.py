"""Kernels of PageRank, for the CPU and for OpenCL devices."""
