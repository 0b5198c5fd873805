"""Algorithms that the scheduler runs, one package each."""
