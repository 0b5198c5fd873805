"""The environment variables with which an MPI launcher informs the processes that it starts."""

from __future__ import annotations

import os

_SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")
"""Variables with the number of started processes, in this order: MPICH, Intel MPI and MVAPICH
(Hydra); Open MPI; Hydra on one host; Slurm's srun.
"""

_RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")


def is_open_mpi() -> bool:
    return "OMPI_COMM_WORLD_SIZE" in os.environ


def launched_ranks() -> int:
    """Processes that the MPI launcher started; 1 without a launcher.

    srun also starts single processes. Slurm's variable therefore counts only with one of MPI's own.
    """
    if not any(name in os.environ for name in _RANK_VARIABLES):
        return 1
    sizes = (os.environ.get(name, "") for name in _SIZE_VARIABLES)
    return next((int(size) for size in sizes if size.isdigit()), 1)


def tasks_without_mpi() -> int:
    """Tasks that Slurm's srun started without MPI; 1 if none."""
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "")
    return int(tasks) if tasks.isdigit() and launched_ranks() == 1 else 1


def launched_rank() -> int:
    """0 without a launcher."""
    if launched_ranks() == 1:
        return 0
    ranks = (os.environ.get(name, "") for name in (*_RANK_VARIABLES, "SLURM_PROCID"))
    return next((int(rank) for rank in ranks if rank.isdigit()), 0)
