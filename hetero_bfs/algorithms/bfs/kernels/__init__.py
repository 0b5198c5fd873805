"""Compute kernels: each stem has a Numba side (.py), and where a device runs it too a .cl side."""

import os

# GNU OpenMP's waiting threads spin for milliseconds by default. On a busy machine, and beside an
# OpenCL device that is this CPU, that steals the core the work waits for: a 0.1 ms level then takes
# 16 ms. About 0.1 ms of spinning keeps idle machines as fast (benchmarks/NOTES.md).
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
