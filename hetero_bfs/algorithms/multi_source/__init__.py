"""Breadth-first searches side by side, 64 in a word (MS-BFS)."""
