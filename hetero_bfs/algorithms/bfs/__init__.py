"""Breadth-first search: result and state, the executors that run it, and its check."""
