"""Selectors by name: makes "auto", "learned" and the others for this machine."""

from __future__ import annotations

from collections.abc import Sequence

from hetero_bfs.devices.machine import DeviceInfo, cpu_slug, device_slug, machine_slug
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.first_model import first_model
from hetero_bfs.scheduling.model_files import find_model
from hetero_bfs.scheduling.model_selectors import model_selector, zhang_selector
from hetero_bfs.scheduling.selectors import (
    DirectionSelector,
    FixedSelector,
    Selector,
    alpha_beta,
    by_direction,
)
from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND, SpeedModel
from hetero_bfs.scheduling.strategies import (
    NAMED_SELECTORS,
    Strategy,
    schedule_names,
    strategy_named,
)
from hetero_bfs.support.messages import setting

SELECTORS = (*NAMED_SELECTORS, "fixed:NAME[,NAME...]")

_STREAMING_ALPHA, _STREAMING_BETA = 30, 256
"""Thresholds of "auto" for edges that stream through the device. Models are fitted to levels whose
edges are resident there. Going bottom-up early and top-down late needs fewer pages."""

_NO_MODEL = (
    "no speed model for this {}; searches {}; train one with "
    f"`{TRAIN_COMMAND} --quick` (a minute or two)"
)


def model_of(device: DeviceInfo | None) -> SpeedModel | None:
    return find_model(cpu_slug(), device_slug(device))


def check_selector_name(wanted: str) -> None:
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
    streams: bool = False,
    others: Sequence[DeviceInfo] = (),
    measures: bool = False,
) -> tuple[Selector, list[str]]:
    """Make a selector by name; also return notes for the user, one line each.

    "auto" has another rule if `streams` (edges stream through the device). `others` are further
    devices. With `measures` the first model of a machine is measured if it has none. Raises
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
    if wanted == "yasui":
        return DirectionSelector("yasui", by_direction(candidates, "cpu", "cpu")), []
    if wanted == "daga":
        if device is None:
            raise ModelError(
                f"{setting('selector', wanted)} runs bottom-up on an OpenCL device; there is none"
            )
        return DirectionSelector("daga", by_direction(candidates, "cpu", "device")), []
    if wanted == "auto" and streams:
        return alpha_beta(device, candidates, _STREAMING_ALPHA, _STREAMING_BETA), []
    return _model_selector(wanted, [device, *others], candidates, measures)


def _model_selector(
    wanted: str,
    devices: Sequence[DeviceInfo | None],
    candidates: Sequence[Strategy],
    measures: bool,
) -> tuple[Selector, list[str]]:
    notes = []
    known: SpeedModel | None = None
    for number, device in enumerate(devices, 1):
        model = model_of(device)
        if model is None:
            machine = f"machine ({machine_slug(device)})"
            if wanted == "zhang":
                raise ModelError(
                    f"selector zhang takes speeds that were measured on this {machine}, and no "
                    f"speed model of it is installed; train first: `{TRAIN_COMMAND}`"
                )
            model = first_model(device, measures)
            if model is None:
                note = _NO_MODEL.format(machine, "choose by Beamer's rule")
                return alpha_beta(devices[0], candidates), [note]
            notes.append(_NO_MODEL.format(machine, "begin with a short measurement and correct it"))
        known = model if known is None else known.joined(model, number)
    assert known is not None
    if wanted == "zhang":
        return zhang_selector(known, candidates), notes
    return model_selector(wanted, known, candidates), notes
