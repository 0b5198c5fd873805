"""Errors that a user can cause and fix. The command line prints them as one line and exits 1.

A check of a result returns a `CheckOutcome`, which raises an error on request.
"""

from __future__ import annotations

from dataclasses import dataclass


class HeteroBFSError(Exception):
    """Base class: the message names the value, the limit and the remedy."""


class ArgumentError(HeteroBFSError, ValueError):
    """A wrong argument of the Python interface; the message names valid values."""


class GraphError(HeteroBFSError, ValueError):
    """A graph, an edge list or a vertex id that cannot be used."""


class GraphFileError(GraphError):
    """A file that cannot be read as a graph; the message names file and line or byte offset."""


class ProgramError(HeteroBFSError, ValueError):
    """A vertex program that cannot be translated or run; the message names class, line and word."""


class EngineClosedError(HeteroBFSError, RuntimeError):
    """A search on an engine that was closed."""


class ForkError(HeteroBFSError, RuntimeError):
    """A forked process, which lacks the threads that its parent had started."""


class DeviceError(HeteroBFSError, RuntimeError):
    """A device that is absent, too small, or failed."""


class GridStalledError(DeviceError):
    """A device that does not run all work-groups of a launch together, unlike in the probe."""


class AgreedError(HeteroBFSError, RuntimeError):
    """An error of at least one MPI rank, which every rank raises with the same message."""


class SplitError(DeviceError):
    """A limit per buffer that the edge array cannot be split to."""


class BudgetError(DeviceError):
    """A device's memory or budget that is too small for a graph."""


class ModelError(HeteroBFSError, ValueError):
    """A speed model that is absent, malformed, or does not fit this program."""


class ValidationError(HeteroBFSError, RuntimeError):
    """A result that breaks a rule of its check, or is not a finite number."""


@dataclass(frozen=True)
class CheckOutcome:
    """Whether a result is valid, and a message of one line."""

    valid: bool
    message: str

    def raise_if_invalid(self) -> None:
        """Raise `ValidationError` unless the result is valid."""
        if not self.valid:
            raise ValidationError(self.message)
