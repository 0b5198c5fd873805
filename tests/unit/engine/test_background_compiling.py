"""Compiling in another process: what it is asked for is what an engine uses; and who asks."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest
from graphs import nasty

import hetero_bfs as hb
from hetero_bfs.engine import background_compiling
from hetero_bfs.support import code_cache, private_cache


@pytest.fixture
def started(monkeypatch):
    """The commands of processes that would be started, each of which is over at once."""
    commands: list = []
    popen = subprocess.Popen

    def start(command, **options):
        commands.append(command)
        return popen([sys.executable, "-c", ""], **options)

    monkeypatch.setattr(background_compiling.subprocess, "Popen", start)
    monkeypatch.setattr(background_compiling, "usable_cores", lambda: 2)
    background_compiling.start.cache_clear()
    yield commands
    background_compiling.start.cache_clear()


@pytest.mark.parametrize("name", ["two components", "grid"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_it_compiles_what_engines_use(name, directed):
    with hb.Engine(nasty(name, directed), device="cpu") as engine:
        engine.bfs(1)
    for function, kinds in background_compiling.what_to_compile():
        assert list(function.overloads) == [kinds], function.py_func.__name__
        assert code_cache.is_kept(function, kinds)


def test_a_process_is_started_once_if_something_is_missing(started, monkeypatch):
    monkeypatch.setattr(code_cache, "is_kept", lambda *_: False)
    for _ in range(2):
        with background_compiling.compiling_in_background() as background:
            background.wait()
    assert started == [[sys.executable, "-P", "-m", "hetero_bfs.engine.background_compiling"]]


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (code_cache, "is_kept", lambda *_: True),
        (private_cache, "folder", lambda: None),
        (background_compiling, "usable_cores", lambda: 1),
        (sys, "executable", "/usr/bin/editor"),
        (sys, "executable", None),
    ],
    ids=["all is kept", "nothing can be kept", "one core", "another program", "no program"],
)
def test_no_process_is_started_where_it_is_of_no_use(started, monkeypatch, where, name, value):
    monkeypatch.setattr(code_cache, "is_kept", lambda *_: False)
    monkeypatch.setattr(where, name, value)
    with background_compiling.compiling_in_background() as background:
        background.wait()
    assert started == []


def test_an_error_ends_it(started, monkeypatch):
    monkeypatch.setattr(code_cache, "is_kept", lambda *_: False)
    popen = subprocess.Popen
    processes: list = []

    def sleeps(command, **options):
        processes.append(popen([sys.executable, "-c", "import time; time.sleep(600)"], **options))
        return processes[-1]

    monkeypatch.setattr(background_compiling.subprocess, "Popen", sleeps)
    with pytest.raises(ZeroDivisionError), background_compiling.compiling_in_background():
        raise ZeroDivisionError
    assert processes[0].returncode < 0


def test_it_ends_with_the_process_that_started_it():
    """A program that is killed, or ends while a daemon thread opens an engine, leaves none."""
    endless = (
        "import time\n"
        "from hetero_bfs.engine import background_compiling\n"
        "background_compiling.what_to_compile = lambda: time.sleep(1000)\n"
        "background_compiling.main()\n"
    )
    starter = (
        "import os, sys\n"
        "from hetero_bfs.engine import background_compiling\n"
        "from hetero_bfs.support import processes\n"
        "background_compiling._is_of_use = lambda: True\n"
        f"processes.module_command = lambda name: [sys.executable, '-c', {endless!r}]\n"
        "print(background_compiling.start().pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", starter], capture_output=True, check=True)
    process = int(done.stdout)
    deadline = time.monotonic() + 60
    while is_running(process) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(process)


def is_running(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
