"""Objects that cannot leave the process that made them."""

from __future__ import annotations

from typing import NoReturn


class OfOneProcess:
    """Base of classes that hold threads, devices or ranks: no pickling, no copying."""

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"{name} objects cannot be pickled or copied, since they hold threads and memory of "
            f"this process; pickle the graph, such as a CSRGraph, and open {name}(graph) in the "
            "other process"
        )
