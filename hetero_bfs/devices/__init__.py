"""Devices: the host's cores (cpu.py) and OpenCL devices (opencl.py, opencl_search.py)."""
