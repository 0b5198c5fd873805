"""The start of a search with several sources or a mask."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Seeds(NamedTuple):
    """Several vertices from which one search starts, and vertices that it ignores.

    The search starts on the host and may migrate like any other.

    Parameters
    ----------
    sources : uint32 array
        New ids: at least one, without duplicates, not masked.
    mask : uint32 array, shape (words,), optional
        A bitmap of the vertices to ignore (level.py).
    """

    sources: npt.NDArray[np.uint32]
    mask: npt.NDArray[np.uint32] | None = None
