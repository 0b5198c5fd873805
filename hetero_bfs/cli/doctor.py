"""`hetero-bfs doctor`: print what was found, what is missing, and how to fix it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from hetero_bfs.cli.output import text_stream, write_json
from hetero_bfs.doctor.examination import Finding, examine
from hetero_bfs.doctor.installation import (
    CACHES,
    MACHINE,
    METERS,
    MODELS,
    PYTHON,
    check_kept_files,
    check_machine,
    check_meters,
    check_models,
    check_python,
)
from hetero_bfs.doctor.opencl_drivers import OPENCL, OpenCLDrivers
from hetero_bfs.doctor.parallel_runs import MPI, check_mpi
from hetero_bfs.doctor.trial import SEARCHES, check_searches
from hetero_bfs.support.messages import announce

_REMEDY = 11  # columns before a remedy


def run(options: Namespace) -> int:
    """Return 1 if no search works."""
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
    summary = {"searches_work": not stopping, "findings": [f.to_dict() for f in findings]}
    write_json(options.json, summary)
    return 1 if stopping else 0


def _examine_all(retest: bool) -> Iterator[Finding]:
    yield from examine(PYTHON, check_python)
    yield from examine(MACHINE, check_machine)
    opencl = OpenCLDrivers(retest)
    yield from examine(OPENCL, opencl.check)
    yield from examine(MODELS, lambda: check_models(opencl.default))
    yield from examine(METERS, lambda: check_meters(opencl.default))
    yield from examine(MPI, check_mpi)
    yield from examine(CACHES, check_kept_files)
    announce("searching a small graph; the first search on a machine compiles for a minute or two")
    yield from examine(SEARCHES, check_searches)


def _end(findings: list[Finding], stopping: list[Finding]) -> str:
    if stopping:
        first = stopping[0]
        return f"searches do not work; fix first: {first.topic}, {first.name}"
    less = sum(finding.state != "ok" for finding in findings)
    return f"searches work; otherwise missing or failed: {less}" if less else "all is well"
