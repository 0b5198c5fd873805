"""Validated searches of a small graph: on the CPU, then with default settings.

They run in a separate process (`python -m hetero_bfs.doctor.trial`), since a driver may end it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hetero_bfs.doctor import Finding
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.support.processes import run_main, run_module, say

SEARCHES = "searches"
_TIMEOUT_SECONDS = 600.0  # the first run on a slow machine compiles everything
_SCALE = 10


def check_searches() -> Iterator[Finding]:
    answer = run_module(__name__, _TIMEOUT_SECONDS)
    trials = {line["trial"]: line for line in answer.lines if "trial" in line}
    for name in ("CPU", "default"):
        result = trials.get(name, {"problem": f"it did not end: {answer.problem}"})
        yield _finding(name, result)
    for line in answer.lines:
        if "threading_layer" in line:
            text = f"{line['threading_layer']}, {line['threads']} threads"
            yield Finding(SEARCHES, "threading layer", "ok", text)


def _finding(name: str, result: dict[str, Any]) -> Finding:
    if result["problem"] is not None:
        remedy = "" if name == "CPU" else "search on the CPU: --device cpu"
        return Finding(SEARCHES, name, "failed", result["problem"], remedy, True)
    return Finding(SEARCHES, name, "ok", result["text"])


def main() -> None:
    import numba

    import hetero_bfs as hb

    graph = hb.kronecker(_SCALE)
    for name, device in (("CPU", "cpu"), ("default", "auto")):
        try:
            text = _search(graph, device)
        except HeteroBFSError as error:
            say(trial=name, problem=str(error))
        else:
            say(trial=name, problem=None, text=text)
    say(threading_layer=numba.threading_layer(), threads=numba.get_num_threads())


def _search(graph: Any, device: Any) -> str:
    import hetero_bfs as hb

    with hb.Engine(graph, device=device) as engine:
        result = engine.bfs(1)
        where = "the CPU alone" if engine.device_info is None else engine.device_info.name
        outcome = hb.validate(graph, 1, result.parent, result.level)
        if not outcome.valid:
            raise HeteroBFSError(f"wrong result: {outcome.message}")
        return f"valid on {where}, selector {engine.selector.name}"


if __name__ == "__main__":
    run_main(main)
