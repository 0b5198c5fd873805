"""The commands that run no algorithm of the table, one function each; it returns the exit status.

A function imports the modules of its command, so that other commands start without them.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from hetero_bfs import __version__
from hetero_bfs.cli.output import (
    print_notes,
    run_together,
    text_stream,
    write_json,
    write_record,
    write_trace,
)
from hetero_bfs.support import messages
from hetero_bfs.support.environment import launched_rank, launched_ranks

if TYPE_CHECKING:
    from hetero_bfs.devices.machine import DeviceInfo
    from hetero_bfs.doctor import Finding
    from hetero_bfs.graph.csr import CSRGraph
    from hetero_bfs.graph.edge_list import EdgeList

_REMEDY = 11  # columns before a remedy


def completion(options: Namespace) -> int:
    import shtab

    from hetero_bfs.cli.arguments import make_parser

    parser = make_parser(__version__)
    _complete_files(parser, shtab.FILE)
    print(shtab.complete(parser, options.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser, files: object) -> None:
    for action in parser._actions:
        if action.type is Path:
            action.complete = files  # type: ignore[attr-defined]
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, files)


def convert(options: Namespace) -> int:
    from hetero_bfs.cli.output import read_graph
    from hetero_bfs.graph.io.registry import check_output

    check_output(options.output, options.weighted, options.directed)
    write_graph(read_graph(options, options.input, options.weighted), options.output)
    return 0


def write_graph(graph: EdgeList | CSRGraph, path: Path, text: TextIO | None = None) -> None:
    """Write a graph, and print its size to `text`, by default standard output."""
    from hetero_bfs.graph.io.registry import write

    print_notes(write(graph, path))
    print(
        f"{path}: {graph.num_vertices} vertices, {graph.num_input_edges} input edges, "
        f"{path.stat().st_size} bytes",
        file=text,
    )


def generate(options: Namespace) -> int:
    from hetero_bfs.cli.graph_arguments import FAMILIES
    from hetero_bfs.graph.generators.families import generated
    from hetero_bfs.graph.io.registry import check_output

    check_output(options.output, options.weighted, options.directed)
    given = {name: getattr(options, name) for name in FAMILIES[options.family]}
    given = {name: value for name, value in given.items() if value is not None}
    messages.announce(f"generating {options.family}")
    write_graph(generated(options.family, **given), options.output)
    return 0


def graph500(options: Namespace) -> int:
    from hetero_bfs.cli.argument_groups import engine_options, fields_of
    from hetero_bfs.graph500.kernel import Graph500Options
    from hetero_bfs.graph500.protocol import run_graph500
    from hetero_bfs.graph500.report import format_report

    settings = Graph500Options(
        **fields_of(Graph500Options, options), engine=engine_options(options)
    )
    if launched_ranks() > 1:
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
    seeds = {"seed1": options.seed1, "seed2": options.seed2}
    write_record(options.json, report.to_dict(), report.device, seeds)
    return 0 if report.valid else 1


def study(options: Namespace) -> int:
    from hetero_bfs.cli.argument_groups import engine_options, fields_of
    from hetero_bfs.support.environment import need_package

    need_package("matplotlib", "matplotlib", "study", "study")

    from hetero_bfs.scheduling.trace import format_table
    from hetero_bfs.study.run import run_study
    from hetero_bfs.study.searches import StudyOptions

    of_all = not (options.scale or options.graph or options.paper)
    given = {
        "families": of_all,
        **fields_of(StudyOptions, options),
        "scales": tuple(options.scale),
        "graphs": tuple(options.graph),
        "budget_seconds": options.budget,
    }
    summary = run_study(options.out_dir, StudyOptions(**given, engine=engine_options(options)))
    print_notes(summary["notes"])
    text = text_stream(options)
    for title, rows in summary["tables"].items() if options.paper else ():
        if rows:
            columns = {name: ("" if n else "<", itemgetter(name)) for n, name in enumerate(rows[0])}
            print(f"{title}\n{format_table(columns, rows)}\n", file=text)
    for name, finding in summary["findings"].items():
        print(f"{name + ':':<15}{finding}", file=text)
    if options.out_dir is not None:
        print(f"the page is {options.out_dir / 'index.html'}", file=text)
    write_json(options.json, summary)
    return 0


def train(options: Namespace) -> int:
    from hetero_bfs.cli.argument_groups import engine_options
    from hetero_bfs.training import run_training

    return int(run_training(options.quick, engine_options(options), options.out, options.budget))


def devices(options: Namespace) -> int:
    from hetero_bfs.cli.terminal import ended_at_once
    from hetero_bfs.devices.machine import cpu_name
    from hetero_bfs.devices.opencl.driver import NO_RUNTIME, choose_device, list_devices
    from hetero_bfs.devices.opencl.verdicts import kept_as_json
    from hetero_bfs.support.environment import usable_cores

    with ended_at_once():  # a driver may hang; nothing is written yet
        found = list_devices()
        default = choose_device().index if any(d.problem is None for d in found) else None
    if options.json is not None:
        tests = [{"self_test": kept_as_json(device)} for device in found]
        listed = [d.to_dict() | test for d, test in zip(found, tests, strict=True)]
        write_record(options.json, {"devices": listed})
        if str(options.json) == "-":
            return 0
    print(f"host: {cpu_name()}, {usable_cores()} cores")
    if not found:
        print(NO_RUNTIME)
        return 0
    for device in found:
        _print_device(device, device.index == default)
    return 0


def _print_device(device: DeviceInfo, is_default: bool) -> None:
    print(f"{device.index}: {device.name}{'  (default)' if is_default else ''}")
    print(f"   platform         {device.platform}, {device.version}, driver {device.driver}")
    print(f"   type             {device.type}, {device.compute_units} compute units")
    print(
        f"   memory           {device.memory_bytes / 2**30:.2f} GiB, "
        f"{'shared with the host' if device.unified_memory else 'its own'}, "
        f"at most {device.max_alloc_bytes / 2**30:.2f} GiB per buffer, "
        f"{device.local_memory_bytes // 1024} KiB local"
    )
    if device.problem is not None:
        print(f"   cannot be used   {device.problem}")
        return
    print(f"   self-test        {_self_test(device)}")


def _self_test(device: DeviceInfo) -> str:
    from hetero_bfs.devices.opencl.verdicts import FAMILIES, kept_verdict

    kept = {family: kept_verdict(device, family) for family in FAMILIES}
    failed = [f"{family} failed, {v.problem}" for family, v in kept.items() if v and v.problem]
    right = [family for family, v in kept.items() if v and v.problem is None]
    if not failed and not right:
        return "not tested yet"
    return "; ".join([*failed, f"right: {', '.join(right) or 'none'}"])


def doctor(options: Namespace) -> int:
    findings: list[Finding] = []
    text = text_stream(options)
    for finding in _examine_all(options.retest):
        if not findings or finding.topic != findings[-1].topic:
            print(finding.topic, file=text)
        findings.append(finding)
        print(f"  {finding.state:<8} {finding.name}: {finding.text}", file=text)
        if finding.remedy:
            print(f"{'':<{_REMEDY}}-> {finding.remedy}", file=text)
        text.flush()
    stopping = [finding for finding in findings if finding.stops_searches]
    print(_end(findings, stopping), file=text)
    summary = {"searches_work": not stopping, "findings": [asdict(f) for f in findings]}
    write_record(options.json, summary)
    return 1 if stopping else 0


def warm_up(options: Namespace) -> int:
    from hetero_bfs.cli.terminal import end_even_if_stuck, ended_at_once
    from hetero_bfs.devices.opencl.driver import choose_devices, usable_devices
    from hetero_bfs.support import private_cache
    from hetero_bfs.warm_up import count_jobs, warm_up

    with ended_at_once():  # a driver may hang; nothing is written yet
        found = usable_devices()
        devices = found if options.device == "all" else choose_devices(options.device, len(found))
    folder = private_cache.folder()
    if folder is None:  # a note has said why
        return 1
    outcomes, text, total = [], text_stream(options), count_jobs(devices)
    for outcome in warm_up(devices=devices):
        outcomes.append(outcome)
        result = outcome.problem or f"{outcome.functions} functions compiled"
        number = f"{len(outcomes)} of {total}"
        messages.announce(f"{number}: {outcome.job}: {result}, {outcome.seconds:.1f} s")
    end_even_if_stuck()  # compiles the code that other commands call
    failed = [outcome for outcome in outcomes if outcome.problem is not None]
    functions = sum(outcome.functions for outcome in outcomes)
    print(f"{functions} functions compiled, {len(failed)} of {total} jobs failed", file=text)
    print(f"the folder of compiled code is {folder}", file=text)
    write_record(
        options.json,
        {
            "folder": str(folder),
            "devices": [info.name for info in devices],
            "jobs": [asdict(outcome) for outcome in outcomes],
        },
    )
    return 1 if failed else 0


def _examine_all(retest: bool) -> Iterator[Finding]:
    from hetero_bfs.doctor import examine
    from hetero_bfs.doctor import installation as here
    from hetero_bfs.doctor.trials import (
        MPI,
        OPENCL,
        SEARCHES,
        OpenCLDrivers,
        check_mpi,
        check_searches,
    )

    yield from examine(here.PYTHON, here.check_python)
    yield from examine(here.MACHINE, here.check_machine)
    opencl = OpenCLDrivers(retest)
    yield from examine(OPENCL, opencl.check)
    yield from examine(here.MODELS, lambda: here.check_models(opencl.default))
    yield from examine(here.METERS, lambda: here.check_meters(opencl.default))
    yield from examine(MPI, check_mpi)
    yield from examine(here.CACHES, here.check_kept_files)
    messages.announce(
        "searching a small graph; the first search on a machine compiles for a minute or two"
    )
    yield from examine(SEARCHES, check_searches)


def _end(findings: Sequence[Finding], stopping: Sequence[Finding]) -> str:
    if stopping:
        first = stopping[0]
        return f"searches do not work; fix first: {first.topic}, {first.name}"
    less = sum(finding.state != "ok" for finding in findings)
    return f"searches work; otherwise missing or failed: {less}" if less else "all is well"
