"""Compiled loops that build, order and check neighbour lists."""
