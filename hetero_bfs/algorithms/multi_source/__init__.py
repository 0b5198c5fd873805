"""Multi-source breadth-first search, 64 searches in a word (MS-BFS)."""
