"""Selectors by objective: least time, or least energy or energy-delay product (objective.py).

Only selectors that compare costs can take joules instead of seconds: the model selectors and
"auto". "auto" is the selector that was best over whole searches in training under the objective, if
training metered them, else "learned". Beamer's rule, daga and fixed schedules compare no costs.
"""

from __future__ import annotations

from collections.abc import Sequence

from hetero_bfs.devices.machine import machine_slug
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.named_selectors import best_in_training, make_selector, model_of
from hetero_bfs.scheduling.objective import METERS_REMEDY, WATTS_REMEDY, Power, make_objective
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND, SpeedModel
from hetero_bfs.scheduling.strategies import OBJECTIVES, ObjectiveName, Strategy, check_objective
from hetero_bfs.support.wording import setting


def make_objective_selector(
    wanted: str,
    device: DeviceInfo | None,
    candidates: Sequence[Strategy],
    high_diameter: bool,
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
        return make_selector(wanted, device, candidates, high_diameter, streams, others)
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
    corrects = wanted != "average"  # the paper's model stays unchanged, as in `make_selector`
    if wanted == "auto":
        auto = (power.auto or {}).get(objective_name)
        wanted, made = best_in_training(model, auto, device, candidates, high_diameter)
        if made is not None and set(made.candidates) <= set(fit):
            made.objective = objective
            return made, notes
        wanted = "learned" if made is not None else wanted
    return model_selector(wanted, model, fit, corrects, objective), notes


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
