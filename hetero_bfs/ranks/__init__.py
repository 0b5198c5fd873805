"""Distributed runs: each rank searches its part of the graph on its own machine."""
