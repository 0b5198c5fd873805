"""Graphs: edge lists, neighbour lists, and how they are built and relabelled."""
