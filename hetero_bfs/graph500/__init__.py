"""The Graph500 benchmark: protocol, statistics and report."""
