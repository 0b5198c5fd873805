"""Kernels of vertex programs. host_code.py and device_code.py insert a program's own code."""
