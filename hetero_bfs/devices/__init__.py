"""Devices: the CPU's cores (cpu/) and OpenCL devices (opencl/)."""
