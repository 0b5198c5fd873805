"""`hetero-bfs graph500`: run the benchmark and print its report."""

from __future__ import annotations

from argparse import Namespace

from hetero_bfs.cli.argument_groups import engine_options
from hetero_bfs.cli.output import print_notes, text_stream, write_json, write_trace
from hetero_bfs.graph500.kernel import Graph500Options
from hetero_bfs.graph500.protocol import run_graph500
from hetero_bfs.graph500.report import format_report
from hetero_bfs.support import messages
from hetero_bfs.support.environment import launched_rank, launched_ranks


def run(options: Namespace) -> int:
    """Return 1 if a search was wrong."""
    settings = Graph500Options(
        kernel=options.kernel,
        scale=options.scale or Graph500Options.scale,
        edgefactor=options.edgefactor or Graph500Options.edgefactor,
        sources=options.sources,
        seed1=options.seed1,
        seed2=options.seed2,
        graph=options.graph,
        directed=options.directed,
        regenerate=options.regenerate,
        validate=options.validate,
        power_log=options.power_log,
        engine=engine_options(options),
    )
    if launched_ranks() > 1:
        from hetero_bfs.cli.output import run_together

        messages.enabled = launched_rank() == 0
        report = run_together(lambda communicator: run_graph500(settings, communicator))
        if launched_rank() > 0:
            return 0 if report.valid else 1
    else:
        report = run_graph500(settings)
    print_notes(report.notes)
    print(format_report(report, options.verbose), file=text_stream(options))
    if options.trace is not None:
        write_trace(options.trace, report.trace_rows())
    write_json(options.json, report.to_dict())
    return 0 if report.valid else 1
