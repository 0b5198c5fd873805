"""Breadth-first search over many ranks: each searches its part with its own machine."""
