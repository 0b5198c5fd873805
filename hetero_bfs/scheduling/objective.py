"""Watts of each strategy, and the objectives that a selector minimises: time, energy, product.

Training measures watts (strategy_watts.py). The speed model's JSON keeps them as `power`:

    watts                per strategy and domain: watts while it runs, idle power included
    error_watts          their standard errors, from the scatter of repetitions and from sampling
    idle_watts           per domain: watts of the machine at rest
    resolution_seconds   per domain: observed update period of its meters
    meters               per domain: their names
    method               the method of measuring, in words
    remarks              per strategy without watts, or with inaccurate ones: the reason

Domains (hetero_bfs/energy) are kept apart. An objective takes the watts of the whole system if
that was metered, else the sum of CPU and device, which are disjoint. A strategy is not a candidate
if its work draws power that no meter sees.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hetero_bfs.energy import DOMAINS, Domain
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.strategies import STRATEGIES, DeviceKind, ObjectiveName, Strategy
from hetero_bfs.scheduling.trace import LevelTrace
from hetero_bfs.support.messages import setting

METERS_REMEDY = (
    "a meter must be readable (NVML, RAPL, amdgpu), or --power-log FILE name the log of an "
    "external one"
)
WATTS_REMEDY = (
    "add them with `hetero-bfs train --power-only` (about a minute) where a meter can be read "
    "(NVML, RAPL, amdgpu), or with `hetero-bfs train --power-only --power-log FILE` beside an "
    "external one"
)

DomainValues = Mapping[Domain, float]


@dataclass(frozen=True)
class Power:
    """Watts as training measured them; see the head of this file."""

    watts: Mapping[str, DomainValues]
    error_watts: Mapping[str, DomainValues]
    idle_watts: DomainValues
    resolution_seconds: DomainValues
    meters: Mapping[Domain, str]
    method: str
    remarks: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "watts": {name: dict(values) for name, values in self.watts.items()},
            "error_watts": {name: dict(values) for name, values in self.error_watts.items()},
            "idle_watts": dict(self.idle_watts),
            "resolution_seconds": dict(self.resolution_seconds),
            "meters": dict(self.meters),
            "method": self.method,
            "remarks": dict(self.remarks),
        }


def read_power(data: Mapping[str, Any]) -> Power:
    """Read the measured watts of a model file."""
    idle = _by_domain(data["idle_watts"], "idle_watts")
    power = Power(
        watts=_by_strategy(data["watts"], "watts"),
        error_watts=_by_strategy(data["error_watts"], "error_watts", may_be_zero=True),
        idle_watts=idle,
        resolution_seconds=_by_domain(data["resolution_seconds"], "resolution_seconds"),
        meters={_domain(k): str(v) for k, v in data["meters"].items()},
        method=str(data["method"]),
        remarks={_strategy(k): str(v) for k, v in data["remarks"].items()},
    )
    for what, found in (
        ("resolution_seconds", set(power.resolution_seconds)),
        ("meters", set(power.meters)),
        *((f"watts of {name}", set(values) | set(idle)) for name, values in power.watts.items()),
    ):
        if found != set(idle):
            raise ModelError(f"power: {what} and idle_watts have different domains")
    if {k: set(v) for k, v in power.watts.items()} != {
        k: set(v) for k, v in power.error_watts.items()
    }:
        raise ModelError("power: watts and error_watts have different strategies or domains")
    return power


def _by_strategy(data: Mapping[str, Any], what: str, may_be_zero: bool = False) -> dict[str, Any]:
    return {
        _strategy(name): _by_domain(values, f"{what} of {name}", may_be_zero)
        for name, values in data.items()
    }


def _by_domain(
    data: Mapping[str, Any], what: str, may_be_zero: bool = False
) -> dict[Domain, float]:
    return {_domain(key): _positive(value, what, may_be_zero) for key, value in data.items()}


def _strategy(name: str) -> str:
    if name not in STRATEGIES:
        raise ModelError(f"power: unknown strategy {name!r}")
    return name


def _domain(name: str) -> Domain:
    if name not in DOMAINS:
        raise ModelError(f"power: unknown domain {name!r}; domains are {', '.join(DOMAINS)}")
    return name


def _positive(value: Any, what: str, may_be_zero: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelError(f"power: {what}: {value!r} is not a number")
    if not math.isfinite(value) or value < 0 or (value == 0 and not may_be_zero):
        raise ModelError(f"power: {what} is {value}; it must be above zero")
    return float(value)


@dataclass(frozen=True)
class Objective:
    """Cost of a second of each strategy under an objective other than time.

    energy   A second costs its watts: a level's joules are seconds x watts. Watts include idle
             power, since the whole machine is on until the search ends.
    edp      A whole search of E joules and T seconds costs E T, which is not a sum over levels. To
             first order d(E T) / (E T) = dT / T + dE / E. A level of t seconds at w watts adds t
             to T and w t to E: a share of (t / T) (1 + w / W), where W = E / T is the mean power.
             So a second costs (1 + w / W) / 2, which is 1 at mean power. W is taken as the mean
             over the strategies. An inexact W only shifts the weights of time and energy.

    `watts` and `error_watts` are sums over `domains`, which were metered for all these strategies.
    Strategies without watts are not candidates.
    """

    objective_name: ObjectiveName
    domains: tuple[Domain, ...]
    watts: Mapping[str, float]
    error_watts: Mapping[str, float]
    idle_watts: float

    @property
    def mean_watts(self) -> float:
        return math.fsum(self.watts.values()) / len(self.watts)

    def per_second(self, strategy: Strategy) -> float:
        """Return the cost of one second of a strategy: joules, or seconds at mean power."""
        watts = self.watts[strategy.name]
        return watts if self.objective_name == "energy" else (1.0 + watts / self.mean_watts) / 2.0

    def per_second_of_migration(self, kind: DeviceKind) -> float:
        """Return the cost of one second of starting on, switching to or converting on a device.

        Migrations are too short to be metered, so it is the mean over the device's strategies.
        """
        costs = [self.per_second(s) for s in STRATEGIES.values() if s.name in self.watts]
        of_kind = [
            self.per_second(s)
            for s in STRATEGIES.values()
            if s.name in self.watts and s.device_kind == kind
        ]
        costs = of_kind or costs
        return math.fsum(costs) / len(costs)

    def margin(self, cost: float) -> str:
        return (
            f"{1e3 * cost:.3g} mJ"
            if self.objective_name == "energy"
            else f"{1e6 * cost:.0f} us (edp)"
        )

    def joules(self, traces: Iterable[LevelTrace]) -> float:
        return math.fsum(
            (trace.seconds + trace.transfer_seconds) * self.watts[trace.strategy]
            for trace in traces
        )

    def net_joules(self, traces: Sequence[LevelTrace]) -> float:
        seconds = math.fsum(trace.seconds + trace.transfer_seconds for trace in traces)
        return self.joules(traces) - self.idle_watts * seconds

    def to_dict(self) -> dict[str, Any]:
        return {
            "objective": self.objective_name,
            "domains": list(self.domains),
            "watts": dict(self.watts),
            "error_watts": dict(self.error_watts),
            "idle_watts": self.idle_watts,
        }

    def __str__(self) -> str:
        watts = ", ".join(
            f"{name} {value:.4g} +- {self.error_watts[name]:.2g}"
            for name, value in self.watts.items()
        )
        return (
            f"{'energy' if self.objective_name == 'energy' else 'energy-delay product'} of the "
            f"{' and '.join(self.domains)}: watts {watts}; idle {self.idle_watts:.4g}"
        )


def make_objective(
    objective_name: ObjectiveName, power: Power, candidates: Sequence[Strategy], shared_memory: bool
) -> tuple[Objective, list[Strategy]]:
    """Return the objective and the candidates that can be compared under it.

    With `shared_memory` the OpenCL device is the CPU or part of it, so the CPU's meters see both.
    Raises `ModelError` if no candidate has watts in the domains that its work draws from.
    """
    domains = _domains(power, shared_memory)
    fit = [s for s in candidates if _covered(s, power, domains, shared_memory)]
    if not fit:
        missing = "; ".join(
            f"{name}: {why}" for name, why in power.remarks.items() if name not in power.watts
        )
        raise ModelError(
            f"{setting('optimize', objective_name)}: no strategy that can run here has "
            f"measured watts{f' ({missing})' if missing else ''}; {WATTS_REMEDY}"
        )

    def total(values: Mapping[str, DomainValues], name: str) -> list[float]:
        return [values[name][domain] for domain in domains]

    objective = Objective(
        objective_name,
        domains,
        {s.name: math.fsum(total(power.watts, s.name)) for s in fit},
        {s.name: math.hypot(*total(power.error_watts, s.name)) for s in fit},
        math.fsum(power.idle_watts[domain] for domain in domains),
    )
    return objective, fit


def _domains(power: Power, shared_memory: bool) -> tuple[Domain, ...]:
    """Return disjoint domains that cover as much as was metered."""
    if "system" in power.idle_watts:
        return ("system",)
    if shared_memory and "cpu" in power.idle_watts:
        return ("cpu",)
    return tuple(domain for domain in DOMAINS if domain in power.idle_watts)


def is_metered(kind: DeviceKind, domains: Iterable[Domain], shared_memory: bool) -> bool:
    """Tell whether meters of these domains cover the work of a kind of device."""
    seen_by = {"system", kind} | ({"cpu"} if shared_memory else set())
    return not seen_by.isdisjoint(domains)


def unmetered_share(
    traces: Iterable[LevelTrace], domains: Sequence[Domain], shared_memory: bool
) -> float:
    """Return the share of levels' seconds, migration included, that these domains do not cover."""
    spent = {True: 0.0, False: 0.0}
    for trace in traces:
        kind = STRATEGIES[trace.strategy].device_kind
        seen = is_metered(kind, domains, shared_memory)
        spent[seen] += trace.seconds + trace.transfer_seconds
    return spent[False] / max(sum(spent.values()), 1e-12)


def _covered(
    strategy: Strategy, power: Power, domains: Sequence[Domain], shared_memory: bool
) -> bool:
    """Tell whether a strategy has watts in all domains, and these cover its device."""
    has = power.watts.get(strategy.name, {})
    return set(domains) <= set(has) and is_metered(strategy.device_kind, domains, shared_memory)
