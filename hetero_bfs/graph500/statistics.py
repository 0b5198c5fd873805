"""Statistics and lines of a Graph500 report, as in the reference code (version 3, src/main.c).

TEPS, traversed edges per second, are not averaged directly. The statistics are computed of seconds
per edge and inverted at the end, which makes the mean harmonic. A search without edges (from an
isolated source) has TEPS 0, that is infinite seconds per edge. The run's harmonic mean and its
standard deviation are then 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_TEPS_NAMES = [f"{name}_TEPS" for name in ("min", "firstquartile", "median", "thirdquartile")]
_TEPS_NAMES += ["max_TEPS", "harmonic_mean_TEPS", "harmonic_stddev_TEPS"]


def statistics(values: npt.ArrayLike) -> dict[str, float]:
    """Return the reference's seven statistics of n >= 1 numbers.

    A quartile is the mean of two order statistics; `stddev` divides by n - 1 and is NaN if n = 1.
    """
    x = np.sort(np.asarray(values, dtype=np.float64))
    n = x.size
    if x.ndim != 1 or n == 0:
        raise ValueError(f"values has shape {x.shape}; give one number or more in one dimension")
    mean = sum(x.tolist()) / n
    with np.errstate(invalid="ignore"):  # infinite seconds per edge: stddev is NaN
        squares = np.sum((x - mean) ** 2)
    return {
        "minimum": float(x[0]),
        "firstquartile": float(x[(n - 1) // 4] + x[n // 4]) * 0.5,
        "median": float(x[(n - 1) // 2] + x[n // 2]) * 0.5,
        "thirdquartile": float(x[n - 1 - (n - 1) // 4] + x[n - 1 - n // 4]) * 0.5,
        "maximum": float(x[-1]),
        "mean": mean,
        "stddev": float(np.sqrt(squares / (n - 1))) if n > 1 else float("nan"),
    }


def teps_statistics(seconds: npt.ArrayLike, nedge: npt.ArrayLike) -> dict[str, float]:
    """Return the statistics of traversed edges per second, in the order of the report.

    `seconds` and `nedge` have one entry per search. The standard deviation of the harmonic mean is
    Norris's (Annals of Mathematical Statistics 11, 1940), NaN for a single search.
    """
    times, counts = np.asarray(seconds, dtype=np.float64), np.asarray(nedge, dtype=np.float64)
    if times.shape != counts.shape:
        raise ValueError(
            f"seconds has shape {times.shape}, nedge {counts.shape}; give equal shapes"
        )
    per_edge = np.full(times.shape, np.inf)
    np.divide(times, counts, out=per_edge, where=counts > 0)
    s = statistics(per_edge)
    order = ("maximum", "thirdquartile", "median", "firstquartile", "minimum", "mean")
    with np.errstate(divide="ignore", invalid="ignore"):  # as in C: 1 / 0 is infinite
        teps = (1 / np.array([s[key] for key in order])).tolist()
        spread = s["stddev"] / (np.square(s["mean"]) * np.sqrt(per_edge.size - 1))
    if per_edge.size > 1 and np.isinf(s["mean"]):
        spread = 0.0
    return dict(zip(_TEPS_NAMES, [*teps, float(spread)], strict=True))


def graph500_lines(
    scale: float,
    edgefactor: float,
    generation_seconds: float,
    construction_seconds: float,
    seconds: Sequence[float],
    nedges: Sequence[int],
    validate_seconds: Sequence[float] | None,
    kernel: str = "bfs",
    processes: int = 1,
) -> list[str]:
    """Return the lines of the reference's report; `validate_seconds` is None without validation.

    `scale` and `edgefactor` may be fractions for graphs of files. `kernel` is "bfs" or "sssp"; the
    reference reports on both in one run, with the same names. `processes` are those of MPI.
    """
    if validate_seconds is None:
        validate_seconds = [-1.0] * len(seconds)
    lines = [
        _line("SCALE:", _whole(scale)),
        _line("edgefactor:", _whole(edgefactor)),
        _line("NBFS:", f"{len(seconds)}"),
        _line("graph_generation:", f"{generation_seconds:g}"),
        _line("num_mpi_processes:", f"{processes}"),
        _line("construction_time:", f"{construction_seconds:g}"),
    ]
    lines += [_line(f"{kernel:<4} {k}_time:", f"{v:g}") for k, v in _named(seconds)]
    lines += [_line(f"{k}_nedge:", f"{v:.11g}") for k, v in _named(nedges)]
    for key, value in teps_statistics(seconds, nedges).items():
        label = f"{kernel:<4} {key}:" + ("     !" if key == "harmonic_mean_TEPS" else "")
        lines.append(_line(label, f"{value:g}"))
    lines += [_line(f"{kernel:<4} {k}_validate:", f"{v:g}") for k, v in _named(validate_seconds)]
    return lines


def _named(values: npt.ArrayLike) -> list[tuple[str, float]]:
    short = {"minimum": "min", "maximum": "max"}
    return [(short.get(key, key), value) for key, value in statistics(values).items()]


def _line(label: str, value: str) -> str:
    return label.ljust(32) + value


def _whole(number: float) -> str:
    return f"{int(number)}" if float(number).is_integer() else f"{number:g}"
