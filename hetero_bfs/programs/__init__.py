"""Vertex programs: a user's Python class, run by Numba on the host and as OpenCL C on devices."""
