"""Graphs that stay on the host and come to an OpenCL device in pages."""
