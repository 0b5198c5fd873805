"""The same entries of an array in other memory."""

from __future__ import annotations

import numpy as np


def other_memory() -> dict[str, object]:
    def read_only(array):
        array = array.copy()
        array.flags.writeable = False
        return array

    def unaligned(array):
        shifted = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
        shifted[:] = array
        return shifted

    return {
        "read-only": read_only,
        "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
        "with gaps": lambda array: np.repeat(array, 2)[::2],
        "backwards": lambda array: array[::-1].copy()[::-1],
        "unaligned": unaligned,
    }
