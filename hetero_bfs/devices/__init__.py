"""Devices: the host's cores (cpu/) and OpenCL devices (opencl/)."""
