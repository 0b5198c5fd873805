"""Cases of the campaign `ranks` on this rank; `mpirun -n P python -m ... FILE` starts each.

All ranks read the same cases, and make the same calls. Rank 0 has the edges, compares with plain
Python, and prints what is wrong.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

import hetero_bfs as hb
from hetero_bfs.engine.rank_engine import RankEngine
from hetero_bfs.ranks.mpi import world
from tests.fuzz import plain_answers as plain
from tests.fuzz.cases import Case, Step, draw_graph
from tests.fuzz.program_cases import PROGRAMS, PlainRun, difference, draw_program
from tests.fuzz.searches import draw_query, search_asked, search_problem

_RUNS = 4  # over one graph
_ALPHA, _TOL = 0.85, 1e-6

Found = Callable[[], str | None]
"""Says what is wrong with a result; called on rank 0."""


def draw_case(chance: Random) -> Case:
    """Return a graph and runs of one algorithm or program over it."""
    name = chance.choice(list(KINDS))
    if name in PROGRAMS:
        return replace(draw_program(name)(chance), place="cpu")
    case = draw_graph(chance, weighted=name in ("sssp", "weighted pagerank"))
    steps: list[Step] = [
        {"sources": [chance.randrange(case.num_vertices)], "reverse": chance.random() < 0.3}
        for _ in range(_RUNS)
    ]
    if name == "bfs":
        steps = [draw_query(case.num_vertices, chance) for _ in range(_RUNS)]
    return replace(case, place="cpu", settings={"program": name}, steps=steps)


def _bfs(engine: RankEngine, case: Case, step: Step) -> Found:
    found = search_asked(engine, step)
    return lambda: search_problem(case, step, found)


def _sssp(engine: RankEngine, case: Case, step: Step) -> Found:
    source = step["sources"][0]
    found = engine.sssp(source)

    def problem() -> str | None:
        right = plain.distances(case, source)
        if found.distance.tolist() != right:
            return f"distances {found.distance.tolist()[:20]}, expected {right[:20]}"
        return plain.path_problem(case, source, right, found.parent.tolist())

    return problem


def _components(engine: RankEngine, case: Case, step: Step) -> Found:
    found = engine.connected_components().component.tolist()
    return lambda: None if found == plain.components(case) else f"components {found[:20]}"


def _pagerank(engine: RankEngine, case: Case, step: Step, weighted: bool = False) -> Found:
    restart = None
    if step["reverse"]:
        restart = np.zeros(case.num_vertices)
        restart[step["sources"]] = 1.0
    rank = engine.pagerank(_ALPHA, _TOL, 10_000, weighted, restart).rank

    def problem() -> str | None:
        wrong = float(np.abs(rank - plain.ranks(case, _ALPHA, restart, weighted)).sum())
        bound = case.num_vertices * _TOL / (1 - _ALPHA)
        return None if wrong <= bound else f"ranks are off by {wrong}, more than {bound}"

    return problem


def _program(engine: RankEngine, case: Case, step: Step) -> Found:
    sample = PROGRAMS[case.settings["program"]]
    parameters = sample.parameters(case.num_vertices, step["source"])
    options = hb.RunOptions(direction=step.get("direction", "auto"))
    result = engine.run(sample.program(), options, **parameters)
    state = {name: result.gathered(name) for name in sample.program.state}

    def problem() -> str | None:
        graph = hb.CSRGraph.from_edge_source(case.edge_list())
        expected = PlainRun(sample.program(), graph, parameters, alone=False).run()
        return difference(state, expected, True) if result.converged else "not converged"

    return problem


KINDS: dict[str, Callable[[RankEngine, Case, Step], Found]] = {
    "bfs": _bfs, "sssp": _sssp, "components": _components, "pagerank": _pagerank,
    "weighted pagerank": partial(_pagerank, weighted=True),
    **{  # most_frequent, and programs that collect messages, need one process
        name: _program
        for name, sample in PROGRAMS.items()
        if name != "Communities" and not sample.alone
    },
}  # fmt: skip
"""What runs; only `problem` of what it returns is for rank 0 alone."""


def problems(case: Case) -> Iterator[str]:
    """Yield on rank 0 what is wrong with the runs of a case."""
    first = world().rank == 0
    engine = RankEngine(case.edge_list() if first else None)
    for number, step in enumerate(case.steps):
        found = KINDS[case.settings["program"]](engine, case, step)
        problem = found() if first else None
        if problem is not None:
            yield f"run {number}: {problem}"


def main() -> None:
    """Run the cases of a file."""
    try:
        for number, case in enumerate(json.loads(Path(sys.argv[1]).read_text())):
            for problem in problems(Case.of(json.dumps(case))):
                print(f"case {number}, {problem}", flush=True)
    except Exception:
        print(f"rank {world().rank}: {traceback.format_exc()}", flush=True)
        world().abort()


if __name__ == "__main__":
    main()
