"""Training on new hardware: collect samples, fit the speed model, evaluate it. Runs as
`hetero-bfs train`."""

from hetero_bfs.training.train import run_power_training, run_training

__all__ = ["run_power_training", "run_training"]
