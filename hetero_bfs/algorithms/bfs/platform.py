"""The platform: the host and the devices that hold one graph, and the stored first choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.executor import DeviceExecutor
from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import Policy
from hetero_bfs.scheduling.selectors import Selector

FIRST_RECORDS = 64
"""Initial number of levels with records."""

_MOST_FIRST_RECORDS = 4096


@dataclass
class Platform:
    """The host and any number of devices, all holding the same graph.

    A place is a number: 0 for the host, 1 for the first device.
    """

    graph: SearchGraph
    host: CPUExecutor
    devices: Sequence[DeviceExecutor] = ()
    records: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    _first_records: dict[tuple[int, int], tuple[Policy, npt.NDArray[np.float64]]] = field(
        default_factory=dict
    )
    """Records of first levels, by the policy's id and `Selector.first_edges`."""

    _scratch: npt.NDArray[np.uint32] | None = None

    def __post_init__(self) -> None:
        for number, device in enumerate(self.devices):
            device.place = 1 + number

    @property
    def accelerator(self) -> DeviceExecutor | None:
        """The first device, for which an engine chooses strategies; None without one."""
        return self.devices[0] if self.devices else None

    def device_at(self, place: int) -> DeviceExecutor:
        return self.devices[place - 1]

    def executor(self, place: int) -> CPUExecutor | DeviceExecutor:
        return self.host if place == schema.HOST else self.device_at(place)

    def close(self) -> None:
        """Wait for the devices and end the host's threads; the last user frees the memory."""
        self.host.close()
        for executor in self.devices:
            executor.device.finish()

    @property
    def lists_host_finds(self) -> bool:
        """Whether the host keeps the found list: there is one device, and it has its own memory.

        A directed graph has no found list, since its queue lacks vertices without edges.
        """
        if len(self.devices) != 1 or self.graph.graph.directed:
            return False
        return not self.devices[0].unified

    def records_of(self, candidates: int, rows: int) -> npt.NDArray[np.float64]:
        """Return records for at least `rows` levels; earlier records keep their content."""
        width = schema.record_width(candidates)
        if self.records.shape[1] != width:
            self.records = np.empty((FIRST_RECORDS, width))
        while self.records.shape[0] < rows:
            self.records = np.concatenate((self.records, np.empty_like(self.records)))
        return self.records

    def choose(
        self,
        selector: Selector,
        interval: int,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
    ) -> None:
        """Choose a level's strategy while the search is not on the host.

        The first choice is stored and reused for all sources of similar degree, since choosing
        takes as long as a small level on the device.
        """
        if frontier.level > 0:
            self._choose_level(selector, interval, frontier, records)
            return
        known = self._first_choice(selector, interval, frontier)
        records[0] = known
        records[0, : schema.RECORD_STATE] = frontier.state[: schema.RECORD_STATE]
        frontier.state[schema.CHOSEN] = known[schema.STRATEGY]

    def expect(self, selector: Selector, interval: int, degree: int) -> None:
        """Make the first choice of a new selector in advance, for sources of this degree.

        If the choice is a device, the policy is sent there, so that the next search is not delayed.
        """
        if not self.devices:
            return
        n, m = self.graph.num_searched, self.graph.graph.num_stored_edges
        known = self._first_choice(selector, interval, Frontier(degree, n, m))
        place = selector.candidates[int(known[schema.STRATEGY])].place
        if place != schema.HOST:
            self.device_at(place).receive_policy(selector.policy, interval)

    def _choose_level(
        self,
        selector: Selector,
        interval: int,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
    ) -> None:
        from hetero_bfs.scheduling.policy import choose_level

        n, m = self.graph.num_searched, self.graph.graph.num_stored_edges
        choose_level(selector.policy, interval, n, m, frontier.state, records)

    def _first_choice(
        self, selector: Selector, interval: int, frontier: Frontier
    ) -> npt.NDArray[np.float64]:
        """Return the record of a first choice; choose only if it is not stored."""
        key = self._first_key(selector, frontier)
        if key not in self._first_records:
            n, m = self.graph.num_searched, self.graph.graph.num_stored_edges
            records = np.empty((1, schema.record_width(len(selector.candidates))))
            self._choose_level(selector, interval, Frontier(key[1], n, m), records)
            known = records[0]
            known[schema.PREDICTED :] = np.nan  # the predictions belong to another source
            if len(self._first_records) >= _MOST_FIRST_RECORDS:  # many are of earlier policies
                self._first_records.clear()
            self._first_records[key] = selector.policy, known
        return self._first_records[key][1]

    def known_choice(
        self, selector: Selector, frontier: Frontier
    ) -> npt.NDArray[np.float64] | None:
        """Return the stored record of a search's first level, if there is one."""
        known = self._first_records.get(self._first_key(selector, frontier))
        return None if known is None else known[1]

    def _first_key(self, selector: Selector, frontier: Frontier) -> tuple[int, int]:
        left = self.graph.graph.num_stored_edges - frontier.edges
        return id(selector.policy), selector.first_edges(frontier.edges, left)

    def scratch_parents(self) -> npt.NDArray[np.uint32]:
        """Return host memory for a copy of a device's parents; later calls return it again."""
        if self._scratch is None:
            device = self.devices[0].device
            self._scratch = device.host_array(self.graph.num_searched, np.uint32)
        return self._scratch
