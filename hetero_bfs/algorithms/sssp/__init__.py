"""Single-source shortest paths."""
