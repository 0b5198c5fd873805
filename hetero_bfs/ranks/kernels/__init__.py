"""Compiled loops of distributed runs: construction, pushes across ranks, validation."""
