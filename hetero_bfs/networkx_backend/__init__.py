"""NetworkX's functions, computed by this package's searches: the backend named "hetero".

NetworkX finds it by the entry points in pyproject.toml. It reads `backend_info` at its own import,
and `backend_interface` when a function is first dispatched.
"""
