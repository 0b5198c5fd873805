"""OpenCL devices: the driver's boundary, memory, and code that every kernel needs."""
