"""Selectors by name and objective: makes "auto", "learned" and the others for this machine."""

from __future__ import annotations

from collections.abc import Sequence

from hetero_bfs.devices.machine import DeviceInfo, cpu_slug, device_slug, machine_slug
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.model_files import default_model, find_model
from hetero_bfs.scheduling.model_selectors import model_selector, zhang_selector
from hetero_bfs.scheduling.objective import METERS_REMEDY, WATTS_REMEDY, Power, make_objective
from hetero_bfs.scheduling.selectors import (
    DirectionSelector,
    FixedSelector,
    Selector,
    alpha_beta,
    by_direction,
    streaming_rule,
)
from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND, SpeedModel
from hetero_bfs.scheduling.strategies import (
    NAMED_SELECTORS,
    OBJECTIVES,
    ObjectiveName,
    Strategy,
    check_objective,
    schedule_names,
    strategy_named,
)
from hetero_bfs.support.messages import setting

SELECTORS = (*NAMED_SELECTORS, "fixed:NAME[,NAME...]")


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
) -> tuple[Selector, list[str]]:
    """Make a selector by name; also return notes for the user, one line each.

    "auto" has another rule if `streams` (edges stream through the device). `others` are further
    devices. Raises `ModelError` if the selector is unknown, or needs a missing device.
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
        return streaming_rule(device, candidates), []
    return _model_selector(wanted, [device, *others], candidates)


def _model_selector(
    wanted: str, devices: Sequence[DeviceInfo | None], candidates: Sequence[Strategy]
) -> tuple[Selector, list[str]]:
    notes = []
    known: SpeedModel | None = None
    for number, device in enumerate(devices, 1):
        model = model_of(device)
        if model is None and wanted == "zhang":
            raise ModelError(
                f"selector zhang takes speeds that were measured on this machine "
                f"({machine_slug(device)}), and there is no speed model of it; train first: "
                f"`{TRAIN_COMMAND}`"
            )
        if model is None:
            model = default_model(None if device is None else device.type)
            if model is None:
                notes.append(
                    f"no speed model is installed; train one with `{TRAIN_COMMAND} --quick`"
                )
                return alpha_beta(devices[0], candidates), notes
            notes.append(
                f"no speed model for this machine ({machine_slug(device)}); searches begin with "
                f"that of {model.name} and correct it; train one with `{TRAIN_COMMAND} --quick` "
                f"(a minute or two), or calibrate one with `{TRAIN_COMMAND} --calibrate` (about "
                "one)"
            )
        known = model if known is None else known.beside(model, number)
    assert known is not None
    if wanted == "zhang":
        return zhang_selector(known, candidates), notes
    return model_selector(wanted, known, candidates), notes


# Selectors by objective: least time, or least energy or energy-delay product (objective.py).
#
# Only selectors that compare costs can take joules instead of seconds: those with a model. Beamer's
# rule, daga and fixed schedules compare no costs.


def make_objective_selector(
    wanted: str,
    device: DeviceInfo | None,
    candidates: Sequence[Strategy],
    objective_name: ObjectiveName,
    streams: bool = False,
    others: Sequence[DeviceInfo] = (),
) -> tuple[Selector, list[str]]:
    """Make a selector by name for an objective; also return notes for the user, one line each.

    The other parameters are explained in `make_selector`. Raises `ModelError` if the selector or
    objective is unknown, the selector does not support the objective, or this machine has no
    measured watts; and as `make_selector`.
    """
    if objective_name == "time":
        return make_selector(wanted, device, candidates, streams, others)
    if objective_name not in OBJECTIVES:
        raise ModelError(
            f"unknown objective {objective_name!r}; choose one of {', '.join(OBJECTIVES)}"
        )
    check_objective(wanted, objective_name)
    if others:
        raise ModelError(
            f"{setting('optimize', objective_name)} compares the host with one OpenCL device; "
            f"{1 + len(others)} were named"
        )
    model, power = _measured(device, objective_name)
    shared = device is not None and device.unified_memory
    objective, fit = make_objective(objective_name, power, candidates, shared)
    notes = []
    left_out = [s.name for s in candidates if s not in fit]
    if left_out:
        notes.append(
            f"{setting('optimize', objective_name)} leaves out {', '.join(left_out)}: no "
            "watts were measured where they work; the others are compared by what the "
            f"{' and '.join(objective.domains)} draws"
        )
    return model_selector(wanted, model, fit, objective), notes


def _measured(device: DeviceInfo | None, objective_name: ObjectiveName) -> tuple[SpeedModel, Power]:
    """Return this machine's model and its watts; other machines' watts do not apply."""
    model = model_of(device)
    if model is None:
        raise ModelError(
            f"{setting('optimize', objective_name)} needs measured watts of every strategy, and "
            f"there is no speed model of this machine ({machine_slug(device)}); make one with "
            f"`{TRAIN_COMMAND}`, which measures them too: {METERS_REMEDY}"
        )
    if model.power is None:
        raise ModelError(
            f"{setting('optimize', objective_name)} needs measured watts of every strategy, and "
            f"the speed model {model.name} has none; {WATTS_REMEDY}"
        )
    return model, model.power
