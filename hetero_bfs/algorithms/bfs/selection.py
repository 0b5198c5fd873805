"""The selector of an engine's searches: made for its devices and graph, corrected by searches.

It runs the searches that scheduling/ asks for: a reference search, and those that warm up.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.platform import Platform, streaming_of
from hetero_bfs.algorithms.bfs.search import Search, restored
from hetero_bfs.errors import DeviceError, ModelError
from hetero_bfs.options import check_selector
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.correction import Correction, warm_up_schedules
from hetero_bfs.scheduling.model_selectors import ModelSelector
from hetero_bfs.scheduling.named_selectors import make_selector
from hetero_bfs.scheduling.selectors import FixedSelector, Selector, alpha_beta
from hetero_bfs.scheduling.strategies import Strategy, available

_INSIDE = 0.618
"""The share of a grid's rows, and of its columns, that lie before the reference source."""


def reference_source(platform: Platform) -> int:
    """Return a typical source: the neighbour of lowest degree of a vertex of highest degree.

    In a directed graph that neighbour may have no out-edges. Then the vertex of highest degree is
    returned. A grid has many: the first lies in a corner, where a search has small levels.
    """
    graph, degree = platform.graph.graph, platform.graph.degree
    hubs = np.flatnonzero(degree == degree.max())
    hub = int(hubs[int(_INSIDE * hubs.size)])
    neighbours = graph.indices[graph.indptr[hub] : graph.indptr[hub + 1]]
    if graph.directed or neighbours.size == 0:
        return hub
    return int(neighbours[degree[neighbours].argmin()])


_MOST_REFERENCE_LEVELS = 1 << 12
"""A reference search ends here: it starts at a hub, so later levels are a tail, too."""


def warm_up(platform: Platform, candidates: Sequence[Strategy]) -> None:
    graph = platform.graph
    if graph.num_searched == 0:
        return
    source = int(graph.degree.argmax())
    for schedule in warm_up_schedules(candidates):
        search = Search(platform, source, FixedSelector(*schedule))
        search.run(max_levels=len(schedule))
        restored(search, (int(graph.relabelling.old_of_new[source]),), "parents", np.int64)


class Selection:
    """The selector in use on a platform. Kernels cannot run before `get_ready`.

    `choose` appends to `notes`, which are for the user.
    """

    selector: Selector
    asked: str | Selector
    """The argument of the last `choose`."""

    def __init__(self, platform: Platform, notes: list[str]) -> None:
        self.platform = platform
        self.candidates = available(len(platform.devices))
        self.learns: Correction | None = None
        self._notes = notes
        self._is_ready = False
        self._corrects = False
        self._known: dict[str, Correction] = {}

    def choose(self, selector: str | Selector) -> None:
        """Use this selector from now on.

        Raises `ArgumentError` or `ModelError` if it cannot be created, or needs strategies that
        cannot run here.
        """
        check_selector(selector)
        if isinstance(selector, str):
            infos = [device.device.info for device in self.platform.devices]
            made, notes = make_selector(
                selector,
                infos[0] if infos else None,
                self.candidates,
                streaming_of(self.platform.accelerator) is not None,
                infos[1:],
                measures=self._is_ready and self._corrects,
            )
            if self._is_ready:
                self._notes += [note for note in notes if note not in self._notes]
            self.selector = made
        else:
            missing = [s.name for s in selector.candidates if s not in self.candidates]
            if missing:
                raise ModelError(
                    f"{selector.name}: {', '.join(missing)} cannot run here; choose among "
                    f"{', '.join(s.name for s in self.candidates)}"
                )
            self.selector = selector.uncorrected
        self.asked = selector
        if self._is_ready and isinstance(self.selector, ModelSelector):
            states, graph = self._reference_states, self.platform.graph
            n, m = graph.num_searched, graph.graph.num_stored_edges
            self.selector = self.selector.on_graph(n, m, states)
        self._correct()

    def get_ready(self, corrects: bool) -> None:
        """Choose again, now that kernels can run a reference search."""
        self._is_ready, self._corrects = True, corrects
        self.choose(self.asked)

    def release(self) -> None:
        self._corrects, self.learns = False, None
        self._known.clear()
        del self.platform

    @property
    def reference_levels(self) -> int:
        """Levels of the reference search, at most 2**12, which the first access runs."""
        return len(self._reference_states)

    @cached_property
    def _reference_states(self) -> npt.NDArray[np.float64]:
        """The state before each level of a search on the host, as rehearsal.py needs it."""
        platform = self.platform
        if platform.graph.num_searched == 0:
            return np.empty((0, schema.RECORD_STATE))
        search = Search(platform, reference_source(platform), alpha_beta(None, available(False)))
        search.run(max_levels=_MOST_REFERENCE_LEVELS)
        return search.recording().records[:, : schema.RECORD_STATE].copy()

    def _correct(self) -> None:
        """Take the correction of a selector with a model."""
        self.learns, base = None, self.selector
        if not (self._corrects and isinstance(base, ModelSelector)):
            return
        known = self._known.get(base.name)
        if known is None or not known.is_of(base):
            known = self._known[base.name] = Correction(base)
        self.learns, self.selector = known, known.selector

    def of_next(self, is_learned_from: bool) -> Selector:
        """Return the selector of the next search; only one that is learned from tries a place."""
        trial = self.learns.trial if is_learned_from and self.learns is not None else None
        return self.selector if trial is None else trial

    def learn(self, search: Search, seconds: float, decision_interval: int) -> None:
        if self.learns is None:
            return
        self.selector = self.learns.learn(search.recording(), seconds)
        following = self.of_next(is_learned_from=True)
        if following is not search.selector:
            with suppress(DeviceError):  # the next search meets it again
                self.platform.expect(following, decision_interval, search.selector)
