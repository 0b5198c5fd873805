"""Settings for compiling and launching the kernels of an OpenCL device.

`hetero-bfs train` measures them (training/tune.py), and the speed model holds them. A device
without a model gets defaults of its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.errors import ModelError
from hetero_bfs.support.checks import check_flag, check_integer, check_type

_MOST_TILE_EDGES = 0xFFFF  # PAST_TILE in top_down.cl
_MOST_SINGLE_GROUP_EDGES = 2047  # COOPERATIVE_EDGE_BITS hold a quarter of its square
_MOST_COOPERATIVE_GROUPS = 256
_STATE_BYTES = 4096  # state, policy and other small structs
_OFFSET_BYTES = 8  # of an offset into more than 2^32 edges
_LEAST_GROUP = 32
_BOUNDS = {
    "group_size": (_LEAST_GROUP, 1024),
    "edges_per_item": (1, None),
    "vertices_per_item": (4, 16),
    "groups_per_unit": (1, None),
    "cached_words": (1, None),
    "single_group_edges": (1, _MOST_SINGLE_GROUP_EDGES),
    "cooperative_groups": (1, _MOST_COOPERATIVE_GROUPS),
    "registers": (0, None),
}

_FORMER_NAMES = {"alone_edges": "single_group_edges", "squad_groups": "cooperative_groups"}

SMALL_VERTICES = 1 << 20
"""Graphs with fewer searched vertices are small: their levels have little parallel work."""


@dataclass(frozen=True)
class Tuning:
    """Sizes of work-groups and tiles, and whether one launch may run a whole search.

    group_size : work-items per work-group, a power of two
    edges_per_item : top-down: edges of a work-group's tile per work-item
    vertices_per_item : bottom-up: vertices of a work-group's tile per work-item; 4, 8 or 16
    groups_per_unit : work-groups per compute unit; fewer if one launch runs a whole search and the
        device cannot run as many at the same time
    cached_words : words of the bitmap that BGC keeps in local memory
    single_group_edges : most edges of a frontier that a single work-group expands top-down, if one
        launch runs a whole search
    cooperative_groups : work-groups of the cooperative subset, which expands larger frontiers on
        graphs with short neighbour lists
    registers : most registers per work-item, 0 for the compiler's choice; NVIDIA only
    one_launch : whether one launch may run a whole search, if a probe shows that the device can
    small : the tuning for graphs of less than `SMALL_VERTICES` searched vertices
    """

    group_size: int = 256
    edges_per_item: int = 4
    vertices_per_item: int = 8
    groups_per_unit: int = 8
    cached_words: int = 1024
    single_group_edges: int = 512
    cooperative_groups: int = 32
    registers: int = 0
    one_launch: bool = True
    small: Tuning | None = None

    def __post_init__(self) -> None:
        check_flag("one_launch", self.one_launch)
        if self.small is not None:
            check_type("small", self.small, Tuning, "a Tuning or None")
        for name, bounds in _BOUNDS.items():
            object.__setattr__(self, name, check_integer(name, getattr(self, name), *bounds))
        for name in ("group_size", "vertices_per_item"):
            if getattr(self, name) & (getattr(self, name) - 1):
                raise ValueError(f"{name} is {getattr(self, name)}; it must be a power of two")
        size = self.group_size
        if size * self.edges_per_item >= _MOST_TILE_EDGES:
            raise ValueError(
                f"group_size x edges_per_item is {size * self.edges_per_item}; "
                f"it must be below {_MOST_TILE_EDGES}"
            )

    def local_bytes(self, offset_bytes: int) -> int:
        """Return the approximate local memory of a work-group in bytes (Shared in steps.cl)."""
        size = self.group_size
        words = size * self.vertices_per_item // 32
        top_down = size * self.edges_per_item * (2 + offset_bytes)
        bottom_up = words * (16 + offset_bytes + 32 + 64) + 4 * size + 4 * self.cached_words
        cooperative = (
            2 * self.single_group_edges * (6 + 2 * offset_bytes) + 8 * self.cooperative_groups
        )
        return max(top_down, bottom_up, cooperative) + 8 * (size + size // 16) + _STATE_BYTES

    def fitting(self, info: DeviceInfo) -> Tuning:
        small = self.small and self.small.fitting(info)
        fitted = replace(self, group_size=info.group_size(self.group_size), small=small)
        while (
            fitted.group_size > _LEAST_GROUP
            and fitted.local_bytes(_OFFSET_BYTES) > info.local_memory_bytes
        ):
            fitted = replace(
                fitted,
                group_size=fitted.group_size // 2,
                cached_words=-(-fitted.cached_words // 2),
                single_group_edges=-(-fitted.single_group_edges // 2),
            )
        return fitted

    def for_graph(self, num_searched: int) -> Tuning:
        return self if self.small is None or num_searched >= SMALL_VERTICES else self.small

    def step_by_step(self) -> Tuning:
        small = None if self.small is None else self.small.step_by_step()
        return replace(self, one_launch=False, small=small)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        del data["small"]
        return data if self.small is None else {**data, "small": self.small.to_json()}


def read_tuning(data: Mapping[str, Any]) -> Tuning:
    """Read the result of `to_json`; raise `ModelError` for an unknown field or a bad value."""
    known, values = asdict(Tuning()), dict[str, Any]()
    for stored, value in data.items():
        name = _FORMER_NAMES.get(stored, stored)
        if name == "small" and isinstance(value, Mapping):
            values[name] = read_tuning(value)
            continue
        if name == "small" or name not in known or int(value) != value:
            raise ModelError(f"tuning: {name} = {value!r} is not a setting of this program")
        values[name] = type(known[name])(value)
    try:
        return Tuning(**values)
    except ValueError as error:
        raise ModelError(f"tuning: {error}") from error


def default_tuning(device_type: str) -> Tuning:
    if device_type == "GPU":
        return Tuning(vertices_per_item=16)
    return Tuning(groups_per_unit=2)
