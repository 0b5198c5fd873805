"""`hetero-bfs doctor`: what a machine has for searches, what it lacks, and the line that mends it.

At their top these modules import nothing but the standard library and each other: the examination
says what is missing even if that is NumPy. What may crash or hang runs in a process of its own.
"""
