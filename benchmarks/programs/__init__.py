"""Algorithms of hetero_bfs beside those of other programs; see __main__.py."""
