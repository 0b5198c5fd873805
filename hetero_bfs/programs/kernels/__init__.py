"""Kernels of vertex programs; what a program brings is inserted (generate.py)."""
