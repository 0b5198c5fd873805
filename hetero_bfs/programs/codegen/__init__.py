"""A user's methods, translated to Numba and OpenCL C."""
