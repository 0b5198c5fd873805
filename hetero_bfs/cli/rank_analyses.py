"""The commands of algorithms other than searches under an MPI launcher."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from hetero_bfs.cli.launched import run_together
from hetero_bfs.errors import AgreedError

if TYPE_CHECKING:
    from hetero_bfs.engine.rank_engine import RankEngine
    from hetero_bfs.ranks.communicator import Communicator

R = TypeVar("R")


def find_by_ranks(
    options: Namespace, find: Callable[[RankEngine], R], weighted: bool = False
) -> tuple[Any, R]:
    """Run an algorithm on all ranks; return the edges (None except on rank 0) and the result.

    Raises
    ------
    AgreedError
        On all ranks: an option, the file or the graph cannot be used.
    """

    def work(communicator: Communicator) -> tuple[Any, R]:
        from hetero_bfs.engine.rank_engine import RankEngine

        _check_options(options)
        engine = RankEngine.read(options.graph, weighted, communicator, options.directed)
        return engine.edges, find(engine)

    return run_together(work)


def _check_options(options: Namespace) -> None:
    """Refuse what several ranks cannot do."""
    refused = {
        "--device": options.device not in (None, "cpu"),
        "--device-memory": options.device_memory_bytes is not None,
        "--max-alloc": options.max_alloc_bytes is not None,
        "--order": options.order not in ("auto", "degree"),
        "--threads": options.threads not in (None, 1),
        "--weighted": getattr(options, "weighted", False),
    }
    for name, given in refused.items():
        if given:
            raise AgreedError(f"{name} needs a single process; start without mpirun")
