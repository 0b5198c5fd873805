"""Kernels of PageRank."""
