"""Every strategy alone, and mixtures, as selectors for tests."""

from __future__ import annotations

from hetero_bfs.scheduling.strategies import available

MIXTURES = [
    "TC,BG,TG,BC,BGC,TC",
    "TG,TC,TG,BC,TC,BG,BC,BGC,TG",
    "BGC,TC,BC,TG",
    "BC,TG,BG,TC,BGC,BC,BG,TG",
    "TG,TG,BC",
    "TC,TC,BG",
]


def selectors_of(place) -> list[str]:
    """Every strategy alone, then mixtures of those that can run."""
    names = [s.name for s in available(place is not None)]
    mixtures = [] if place is None else MIXTURES
    return (
        [f"fixed:{n}" for n in names]
        + ["fixed:TC,BC,TC", "fixed:BC,TC,BC,BC,TC"]
        + [f"fixed:{m}" for m in mixtures]
    )
