"""An engine as notebooks display it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hetero_bfs.algorithms.bfs.platform import Platform
from hetero_bfs.timeline.notebook import as_html


def engine_html(platform: Platform | None, selector: str, notes: Sequence[str]) -> str:
    """Return an engine's graph, devices, selector and notes as HTML; no platform: closed."""
    if platform is None:
        return as_html("Engine", {"state": "closed"})
    graph = platform.graph
    names = [device.device.info.name for device in platform.devices]
    facts: dict[str, Any] = {
        "vertices": graph.num_vertices,
        "input edges": graph.num_input_edges,
        "directed": graph.graph.directed,
        "OpenCL devices": ", ".join(names) or "none",
        "CPU threads": platform.host.threads,
        "order": graph.relabelling.order,
        "selector": selector,
    }
    facts |= {f"note {number}": note for number, note in enumerate(notes, 1)}
    return as_html("Engine", facts)
