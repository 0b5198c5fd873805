"""The selector of an engine's searches: made for its devices and graph, corrected by searches."""

from __future__ import annotations

from contextlib import suppress
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.correction import (
    Correction,
    Corrections,
    reference_states,
)
from hetero_bfs.algorithms.bfs.platform import Platform, streaming_of
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.errors import DeviceError, ModelError
from hetero_bfs.options import check_selector
from hetero_bfs.scheduling.model_selectors import ModelSelector
from hetero_bfs.scheduling.named_selectors import make_objective_selector
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.scheduling.strategies import ObjectiveName, available


class Selection:
    """The selector in use on a platform. Kernels cannot run before `get_ready`.

    `choose` appends to `notes`, which are for the user.
    """

    selector: Selector
    asked: tuple[str | Selector, ObjectiveName]
    """Arguments of the last `choose`. The objective matters only for a selector given by name."""

    def __init__(self, platform: Platform, notes: list[str]) -> None:
        self.platform = platform
        self.candidates = available(len(platform.devices))
        self.learns: Correction | None = None
        self._notes = notes
        self._is_ready = False
        self._corrections: Corrections | None = None
        self._known_states: npt.NDArray[np.float64] | None = None
        self._on_graph: WeakKeyDictionary[ModelSelector, ModelSelector] = WeakKeyDictionary()

    def choose(self, selector: str | Selector, optimize: ObjectiveName) -> None:
        """Use this selector from now on.

        Raises `ArgumentError` or `ModelError` if it cannot be created, or needs strategies that
        cannot run here.
        """
        check_selector(selector)
        if isinstance(selector, str):
            infos = [device.device.info for device in self.platform.devices]
            made, notes = make_objective_selector(
                selector,
                infos[0] if infos else None,
                self.candidates,
                optimize,
                streaming_of(self.platform.accelerator) is not None,
                infos[1:],
            )
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
        self.asked = selector, optimize
        self._bind()
        self._correct()

    def get_ready(self, corrects: bool) -> None:
        """Choose again, now that kernels can run a reference search."""
        self._is_ready = True
        self.choose(*self.asked)
        if corrects:
            self._corrections = Corrections(self.platform, self.candidates)
            self._correct()

    def release(self) -> None:
        self._corrections = self.learns = None
        del self.platform

    @property
    def reference_levels(self) -> int:
        """Levels of the reference search, at most 2**12, which the first access runs."""
        return len(self._reference_states())

    def _reference_states(self) -> npt.NDArray[np.float64]:
        if self._known_states is None:
            self._known_states = reference_states(self.platform)
        return self._known_states

    def _bind(self) -> None:
        if not (self._is_ready and isinstance(self.selector, ModelSelector)):
            return
        states, graph, unbound = self._reference_states(), self.platform.graph, self.selector
        bound = self._on_graph.get(unbound)
        if bound is None:
            bound = unbound.on_graph(graph.num_searched, graph.graph.num_stored_edges, states)
            if bound is not unbound:  # an entry that refers to its own key is never freed
                self._on_graph[unbound] = bound
        self.selector = bound

    def _correct(self) -> None:
        corrections = self._corrections
        self.learns = None if corrections is None else corrections.of(self.selector)
        if self.learns is not None:
            self.selector = self.learns.selector

    def learn(self, search: Search, seconds: float, decision_interval: int) -> None:
        if self.learns is None:
            return
        learned = self.learns.learn(search.recording(), seconds)
        if learned is not self.selector:
            before, self.selector = self.selector, learned
            with suppress(DeviceError):  # the next search meets it again
                self.platform.expect(learned, decision_interval, before)
