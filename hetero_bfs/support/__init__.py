"""Utilities for all other packages: checks, files, memory, progress, compiling."""
