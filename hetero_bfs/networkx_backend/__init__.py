"""NetworkX's functions on this package's searches: the backend named "hetero".

NetworkX finds it by the entry points in pyproject.toml. `backend_info` is read whenever NetworkX
is imported, `backend_interface` when a function is first dispatched.
"""
