"""Kernels of multi-source searches, for the CPU and for OpenCL devices."""
