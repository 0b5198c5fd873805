"""Training on new hardware: collect samples, fit the speed model, evaluate it.

It runs as `hetero-bfs train`.
"""

from hetero_bfs.training.train import run_training

__all__ = ["run_training"]
