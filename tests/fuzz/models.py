"""Speed models damaged at random: each must be refused in one line, or its searches are right."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
import traceback
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import hetero_bfs as hb
from hetero_bfs.devices.machine import machine_slug
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.model_files import MODELS_VARIABLE
from tests.fuzz.campaign import Attempt, Campaign
from tests.fuzz.files import DAMAGES, TEXT_DAMAGES

_SHIPPED = sorted((Path(__file__).parents[2] / "models").glob("*.json"))
_SELECTORS = ("auto", "learned", "thresholds", "zhang")
_SCALE, _SOURCE = 7, 1
_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**63, 10**400, 0.0, -0.0, -1e-9, 1e-320, 1e308, -1e308,
    float("nan"), float("inf"), "", "TC", "cpu", "1e-9", "constant", [], {}, [0], {"TC": 1},
    {"constant": 1e-6}, [[[]]],
]  # fmt: skip


def _values(base: str, chance: Random) -> bytes:
    """Replace, drop, add or exchange a few values of the model."""
    data = json.loads(base)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        holder, key = chance.choice(_places(data))
        other, its_key = chance.choice(_places(data))
        deed = chance.random()
        if deed < 0.6:
            holder[key] = chance.choice(_VALUES)
        elif deed < 0.75:
            del holder[key]
        elif deed < 0.9:
            holder[key] = copy.deepcopy(other[its_key])
        elif isinstance(holder, dict):
            holder[chance.choice(("more", "TX", "", its_key, "learned"))] = chance.choice(_VALUES)
    return json.dumps(data).encode()


def _places(data: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return every holder and key in a model; half of them are not those of `about`."""
    found: list[tuple[Any, Any]] = []
    waiting: list[Any] = [data]
    while waiting:
        holder = waiting.pop()
        keys = range(len(holder)) if isinstance(holder, list) else list(holder)
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    return found or [(data, "format")]


def _bytes(base: str, chance: Random) -> bytes:
    """Damage the file, whatever it means."""
    raw = base.encode()
    for _ in range(chance.choice((1, 1, 2, 3))):
        raw = chance.choice((*DAMAGES, *TEXT_DAMAGES))(raw, chance)
    return raw


KINDS = {"values": _values, "bytes": _bytes}


@cache
def _graph() -> hb.CSRGraph:
    return hb.kronecker(_SCALE, 8)


@cache
def _level() -> list[int]:
    graph = _graph()
    with hb.Engine(graph, "fixed:TC", "cpu") as engine:
        result = engine.bfs(_SOURCE)
    assert hb.validate(graph, _SOURCE, result.parent, result.level).valid
    return result.level.tolist()


def trouble(path: Path) -> str | None:
    """Search with a file as this machine's model; return what went wrong, None if nothing did."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, Path(folder) / f"{machine_slug(None)}.json")
        with mock.patch.dict(os.environ, {MODELS_VARIABLE: folder}):
            for selector in _SELECTORS:
                for correction in (False, True):
                    wrong = _wrong_with(selector, correction)
                    if wrong is not None:
                        return f"{selector}: {wrong}"
    return None


def _wrong_with(selector: str, correction: bool) -> str | None:
    expected = _level()
    try:
        options = {"selector": selector, "correction": correction, "device": "cpu", "threads": 1}
        with hb.Engine(_graph(), **options) as engine:
            found = engine.bfs(_SOURCE).level.tolist()
    except ModelError as error:
        return f"an error of several lines: {error}" if "\n" in str(error) else None
    except Exception:
        return traceback.format_exc()
    return None if found == expected else f"levels {found[:20]}, expected {expected[:20]}"


def attempt(kind: str, number: int, seed: int, folder: Path) -> Attempt:
    """Try one model, kept as a file."""
    chance = Random(f"{seed} {kind} {number}")
    base = chance.choice(_SHIPPED).read_text()
    path = folder / f"{kind}-{seed}-{number}.json"
    path.write_bytes(KINDS[kind](base, chance))
    return Attempt(path, trouble(path))


def replay(kind: str, path: Path) -> list[str]:
    """Try a kept model."""
    wrong = trouble(path)
    return [] if wrong is None else [wrong]


CAMPAIGN = Campaign("models", KINDS, attempt, replay)
