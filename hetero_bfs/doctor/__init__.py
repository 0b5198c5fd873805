"""`hetero-bfs doctor`: what searches need, what is missing, and how to fix it.

At their top these modules import only the standard library and each other, so that the examination
works even without NumPy. Whatever may crash or hang runs in another process.
"""
