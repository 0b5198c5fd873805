"""Errors a user can cause and mend. The command line prints them as one line and exits 1."""


class HeteroBFSError(Exception):
    """Base class: the message names the value, the limit and the remedy."""


class ArgumentError(HeteroBFSError, ValueError):
    """An argument of the Python interface that is of no use; the message says what would be."""


class GraphError(HeteroBFSError, ValueError):
    """A graph, an edge list or a vertex id that cannot be used."""


class GraphFileError(GraphError):
    """A file that cannot be read as a graph; the message names file and line or byte offset."""


class EngineClosedError(HeteroBFSError, RuntimeError):
    """A search on an engine that was closed."""


class ForkError(HeteroBFSError, RuntimeError):
    """A process made by fork that lacks the threads which its parent had started."""


class DeviceError(HeteroBFSError, RuntimeError):
    """A device that is absent, too small, or failed."""


class GridStalledError(DeviceError):
    """A device that did not run all work-groups of a launch together, as it did in the probe."""


class SplitError(DeviceError):
    """A limit per buffer that the edge array cannot be cut to."""


class BudgetError(DeviceError):
    """A device's memory, or what may be used of it, that holds too little of a graph."""


class ModelError(HeteroBFSError, ValueError):
    """A speed model that is absent, malformed, or does not fit this program."""


class ValidationError(HeteroBFSError, RuntimeError):
    """A search result that breaks one of the five Graph500 rules."""
