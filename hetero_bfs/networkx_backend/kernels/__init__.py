"""Compiled loops over NetworkX's own dicts."""
