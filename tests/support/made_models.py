"""Speed models made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hetero_bfs.scheduling import model_files
from hetero_bfs.scheduling.speed_model import FORMAT
from hetero_bfs.scheduling.strategies import STRATEGIES


def model_json(name: str) -> dict:
    """Return a speed model that says: top-down 1 ns an edge, bottom-up 10 ns a vertex, both +1 us.

    The device takes twice as long as the CPU; switching costs 1 us, converting 2 us.
    """
    learned = {}
    for strategy in STRATEGIES.values():
        factor = 2.0 if strategy.device_kind == "device" else 1.0
        work = {"frontier_edges": 1e-9, "unvisited_vertices": 1e-8}
        known = strategy.columns
        columns = {"constant": 1e-6} | {k: v for k, v in work.items() if k in known}
        learned[strategy.name] = {k: factor * v for k, v in columns.items()}
    speeds = {s.name: 1e9 if s.device_kind == "cpu" else 5e8 for s in STRATEGIES.values()}
    return {
        "format": FORMAT,
        "name": name,
        "about": {"machine": {"device": {"type": "CPU"}}},
        "learned": learned,
        "zhang": {"alpha": 0.1, "edges_per_second": speeds, "graphs": 80, "levels": 2000},
        "start": {"on_cpu": {"constant": 3e-6}, "on_device": {"constant": 3e-6}},
        "switch": {"to_cpu": {"constant": 1e-6}, "to_device": {"constant": 1e-6}},
        "convert": {"on_cpu": {"constant": 2e-6}, "on_device": {"constant": 2e-6}},
    }


def ship(monkeypatch: pytest.MonkeyPatch, folder: Path, *models: dict) -> None:
    """Let these models be all that come with the program, as files in a folder."""
    folder.mkdir(exist_ok=True)
    paths = {model["name"]: folder / f"{model['name']}.json" for model in models}
    for model in models:
        paths[model["name"]].write_text(json.dumps(model))
    monkeypatch.setattr(model_files, "_shipped_files", lambda: dict(paths))
