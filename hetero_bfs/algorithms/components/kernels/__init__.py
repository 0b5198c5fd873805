"""Kernels of connected components, for the CPU and for OpenCL devices."""
