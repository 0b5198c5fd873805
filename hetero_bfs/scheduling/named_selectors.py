"""Selectors by name: makes "auto", "learned" and the others for this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hetero_bfs.devices.machine import cpu_slug, device_slug, machine_slug
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.model_store import default_model, find_model
from hetero_bfs.scheduling.selectors import (
    DirectionSelector,
    FixedSelector,
    Selector,
    alpha_beta,
    by_direction,
    streaming_rule,
)
from hetero_bfs.scheduling.speed_model import AUTO_GRAPHS, TRAIN_COMMAND, SpeedModel
from hetero_bfs.scheduling.strategies import (
    NAMED_SELECTORS,
    Strategy,
    schedule_names,
    strategy_named,
)
from hetero_bfs.support.wording import setting

SELECTORS = (*NAMED_SELECTORS, "fixed:NAME[,NAME...]")


def model_of(device: DeviceInfo | None) -> SpeedModel | None:
    """Return the speed model of this machine with this device, or None."""
    return find_model(cpu_slug(), device_slug(device))


def check_selector_name(wanted: str) -> None:
    """Raise `ModelError` for a text that is neither a selector's name nor a schedule."""
    if wanted.startswith("fixed:"):
        try:
            schedule_names(wanted)
        except ValueError as error:
            raise ModelError(f"selector {error}") from None
    elif wanted not in NAMED_SELECTORS:
        raise ModelError(f"unknown selector {wanted!r}; choose one of {', '.join(SELECTORS)}")


def make_selector(
    wanted: str,
    device: DeviceInfo | None,
    candidates: Sequence[Strategy],
    high_diameter: bool = False,
    streams: bool = False,
    others: Sequence[DeviceInfo] = (),
) -> tuple[Selector, list[str]]:
    """Make a selector by name; also return notes for the user, one line each.

    "auto" depends on `high_diameter` (searches of the graph have many levels) and on `streams`
    (edges stream through the device). With `others`, further devices, "auto" is "learned". Raises
    `ModelError` if the selector is unknown, or needs a missing device.
    """
    check_selector_name(wanted)
    names = [s.name for s in candidates]
    if wanted.startswith("fixed:"):
        chosen = schedule_names(wanted)
        if not set(chosen) <= set(names):
            raise ModelError(
                f"{setting('selector', wanted)}: strategies that can run are {', '.join(names)}"
            )
        return FixedSelector(*map(strategy_named, chosen)), []
    if wanted == "alpha-beta":
        return alpha_beta(device, candidates), []
    if wanted == "daga":
        if device is None:
            raise ModelError(
                f"{setting('selector', wanted)} runs bottom-up on an OpenCL device; there is none"
            )
        return DirectionSelector("daga", by_direction(candidates, "cpu", "device")), []
    corrects = wanted != "average"  # if the user asks for it, the paper's model stays unchanged
    if wanted == "auto":
        if streams:
            return streaming_rule(device, candidates), []
        model = model_of(device)
        auto = None if model is None or others else model.auto
        wanted, made = best_in_training(model, auto, device, candidates, high_diameter)
        if made is not None:
            return made, []
    return _model_selector(wanted, [device, *others], candidates, corrects)


def best_in_training(
    model: SpeedModel | None,
    auto: Mapping[str, Mapping[str, Any]] | None,
    device: DeviceInfo | None,
    candidates: Sequence[Strategy],
    high_diameter: bool,
) -> tuple[str, Selector | None]:
    """Return the selector behind "auto": the name of a model selector, or Beamer's rule.

    `auto` has the model's best selectors in training; None if training compared none.
    """
    if model is None or auto is None:
        return "learned", None
    best = auto[AUTO_GRAPHS[high_diameter]]
    if model.name != machine_slug(device) and best.get("where") != "cpu":
        return "learned", None  # the best selector needs the device used in training
    if best["selector"] != "alpha-beta":
        return best["selector"], None
    alpha, beta, where = best["alpha"], best["beta"], best["where"]
    return best["selector"], alpha_beta(device, candidates, alpha, beta, where)


def _model_selector(
    wanted: str,
    devices: Sequence[DeviceInfo | None],
    candidates: Sequence[Strategy],
    corrects: bool,
) -> tuple[Selector, list[str]]:
    notes = []
    known: SpeedModel | None = None
    for number, device in enumerate(devices, 1):
        model = model_of(device)
        if model is None:
            model = default_model(None if device is None else device.type)
            wanted = "average"
            if model is None:
                notes.append(
                    f"no speed model is installed; train one with `{TRAIN_COMMAND} --quick`"
                )
                return alpha_beta(devices[0], candidates), notes
            notes.append(
                f"no speed model for this machine ({machine_slug(device)}); using average speeds "
                f"measured on {model.name}; train one with `{TRAIN_COMMAND} --quick` (a minute or "
                f"two), or calibrate one with `{TRAIN_COMMAND} --calibrate` (about one)"
            )
        known = model if known is None else known.beside(model, number)
    assert known is not None
    return model_selector(wanted, known, candidates, corrects), notes
