"""Graphs whose edges stay on the host and stream to an OpenCL device in pages."""
