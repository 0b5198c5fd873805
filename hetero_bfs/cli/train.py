"""`hetero-bfs train`: measure this machine and fit its speed model."""

from __future__ import annotations

from argparse import Namespace

from hetero_bfs.cli.argument_groups import engine_options
from hetero_bfs.training import run_calibration, run_power_training, run_training


def run(options: Namespace) -> int:
    engine = engine_options(options)
    if options.power_only:
        return int(run_power_training(options.quick, engine, options.power_log))
    if options.calibrate:
        return int(run_calibration(engine, options.out, options.source))
    return int(run_training(options.quick, engine, options.out, options.power_log))
