"""`hetero-bfs study`: measure this machine and write the page of tables and figures."""

from __future__ import annotations

from argparse import Namespace

from hetero_bfs.cli.argument_groups import engine_options
from hetero_bfs.cli.output import print_notes, text_stream, write_json
from hetero_bfs.study import StudyOptions, run_study


def run(options: Namespace) -> int:
    families = options.families
    if families is None:
        families = not (options.scale or options.graph)
    summary = run_study(
        options.out_dir,
        StudyOptions(
            scales=tuple(options.scale),
            graphs=tuple(options.graph),
            directed=options.directed,
            families=families,
            keys=options.keys,
            rounds=options.rounds,
            quick=options.quick,
            power_log=options.power_log,
            engine=engine_options(options),
        ),
    )
    print_notes(summary["notes"])
    text = text_stream(options)
    for name, finding in summary["findings"].items():
        print(f"{name + ':':<13}{finding}", file=text)
    print(f"the page is {options.out_dir / 'index.html'}", file=text)
    write_json(options.json, summary)
    return 0
