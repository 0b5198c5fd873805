"""The doctor: what it finds on whole and on broken machines, and that no check ends another."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pytest
from cli_runs import command, run
from made_devices import CPU

from hetero_bfs.devices.opencl import verdicts
from hetero_bfs.doctor import Finding, examine, installation, trials
from hetero_bfs.doctor.installation import check_kept_files, check_meters, check_models
from hetero_bfs.doctor.trials import OpenCLDrivers, check_mpi
from hetero_bfs.support import private_cache
from hetero_bfs.support.processes import Answer, run_module

TOPICS = "Python", "machine", "OpenCL", "speed model", "energy meters", "MPI", "caches", "searches"


def states(findings) -> dict[str, str]:
    return {finding.name: finding.state for finding in findings}


def by_name(findings, name) -> Finding:
    return next(finding for finding in findings if finding.name == name)


def test_where_searches_work_it_says_so(tmp_path, capsys):
    assert run("doctor", "--json", tmp_path / "doctor.json") == 0
    printed = capsys.readouterr().out
    told = json.loads((tmp_path / "doctor.json").read_text())
    assert told["searches_work"]
    assert list(dict.fromkeys(f["topic"] for f in told["findings"])) == list(TOPICS)
    assert not any(f["needed"] and f["state"] != "ok" for f in told["findings"])
    for finding in told["findings"]:
        assert f"{finding['name']}: {finding['text']}" in printed
        assert finding["remedy"] in printed
    assert "valid on" in printed


def test_without_numpy_it_names_what_is_missing(tmp_path):
    """And without a traceback, though nearly nothing can be examined."""
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise ImportError('No module numpy')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = command("doctor", "--json", "-", env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    told = json.loads(done.stdout)
    assert not told["searches_work"]
    searches = [f for f in told["findings"] if f["topic"] == "searches"]
    assert {f["state"] for f in searches} == {"failed"}
    assert "No module numpy" in searches[0]["text"]
    assert {f["topic"] for f in told["findings"]} == set(TOPICS)


def test_a_check_that_fails_keeps_what_it_found():
    def check():
        yield Finding("a", "first", "ok", "there")
        raise RuntimeError("two\nlines")

    found = examine("a", check)
    assert [f.state for f in found] == ["ok", "failed"]
    assert found[1].text == "not examined: RuntimeError: two lines"


# Packages.


def test_packages_that_are_old_or_absent(monkeypatch):
    extra = 'none-of-this>=1; extra == "test"'
    lines = ["numpy>=999", "no-such-package >= 1", extra, "scipy>=1"]
    monkeypatch.setattr(installation.metadata, "requires", lambda _: lines)
    found = examine("Python", installation.check_python)
    assert states(found)["numpy"] == "failed"
    absent = by_name(found, "no-such-package")
    assert absent.state == "missing"
    assert absent.remedy.endswith("-m pip install 'no-such-package>=1'")
    assert absent.stops_searches
    assert by_name(found, "packages").text.startswith("scipy ")
    assert "none-of-this" not in states(found)


def test_variables_that_stop_searches(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "many")
    found = examine("machine", installation.check_machine)
    assert by_name(found, "environment").stops_searches
    assert "'many'" in by_name(found, "environment").text


# OpenCL.


def test_a_driver_that_cannot_be_loaded(monkeypatch, tmp_path):
    (tmp_path / "gone.icd").write_text("libgone.so.1\n")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    drivers = OpenCLDrivers()
    found = examine("OpenCL", drivers.check)
    assert by_name(found, "driver").state == "failed"
    assert "libgone.so.1" in by_name(found, "driver").text
    assert str(tmp_path / "gone.icd") in by_name(found, "driver").remedy
    assert by_name(found, "devices").state == "missing"
    assert not any(f.stops_searches for f in found)
    assert drivers.default is None


def test_a_vendors_file_that_cannot_be_read(monkeypatch, tmp_path):
    (tmp_path / "gone.icd").symlink_to(tmp_path / "nowhere")
    (tmp_path / "zero.icd").write_text("lib\0.so\n")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    found = examine("OpenCL", OpenCLDrivers().check)
    unread, unloaded = (f.text for f in found if f.name == "driver")
    assert unread.startswith(f"{tmp_path / 'gone.icd'} cannot be read: ")
    assert "cannot be loaded" in unloaded
    assert not any(f.stops_searches for f in found)


def test_no_driver_at_all(monkeypatch, tmp_path):
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    found = examine("OpenCL", OpenCLDrivers().check)
    assert states(found)["drivers"] == "missing"
    assert by_name(found, "drivers").remedy == "apt-get install pocl-opencl-icd"


DEVICE = {
    "device": CPU.to_dict(),
    "default": True,
    "self_test": {
        "searches": {"date": "2026-11-26", "seconds": 12.3, "problem": None},
        "PageRank": {"date": "2026-11-25", "seconds": 4.0, "problem": "step 'x': SIGSEGV"},
        "components": None,
    },
}


def test_what_self_tests_found(monkeypatch):
    monkeypatch.setattr(trials, "run_module", lambda *_: Answer([DEVICE], None))
    found = [f for f in examine("OpenCL", OpenCLDrivers().check) if f.name == "self-test"]
    failed, right, untested = found
    assert failed.state == "failed"
    assert "PageRank (2026-11-25, 4.0 s): step 'x': SIGSEGV" in failed.text
    assert failed.remedy.endswith("hetero-bfs doctor --retest")
    assert right.text == "right: searches (2026-11-26, 12.3 s)"
    assert untested.text.endswith("components")
    assert not any(f.stops_searches for f in found)


def test_self_tests_are_repeated(monkeypatch):
    tested = []
    monkeypatch.setattr(trials, "run_module", lambda *_: Answer([DEVICE], None))
    monkeypatch.setattr(verdicts, "test", lambda info, family: tested.append((info, family)))
    monkeypatch.setattr(verdicts, "kept_as_json", lambda _: {"searches": None})
    found = examine("OpenCL", OpenCLDrivers(retest=True).check)
    assert tested == [(CPU, family) for family in verdicts.FAMILIES]
    assert by_name(found, "self-test").text.endswith("searches")


@pytest.mark.parametrize("step", ["driver", "platforms"])
def test_a_driver_that_crashes_is_named(monkeypatch, tmp_path, step):
    """As its library is loaded, or only when all are asked: then each is tried alone."""
    good, bad = tmp_path / "good.icd", tmp_path / "bad.icd"
    for file in (good, bad):
        file.write_text("lib.so\n")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    last = {"step": "driver", "file": str(bad)} if step == "driver" else {"step": step}

    def probe(module, timeout_seconds, examined, OCL_ICD_VENDORS=""):
        crashes = str(good) != OCL_ICD_VENDORS
        return Answer([last], "it was ended by SIGSEGV" if crashes else None)

    monkeypatch.setattr(trials, "run_module", probe)
    found = [f for f in examine("OpenCL", OpenCLDrivers().check) if f.stops_searches]
    assert len(found) == 1
    assert found[0].text.startswith(f"{bad}: ")
    assert "SIGSEGV" in found[0].text
    assert found[0].remedy.endswith(f"export OCL_ICD_VENDORS={good}")


def test_a_process_that_crashes_or_hangs_is_told(tmp_path, monkeypatch):
    (tmp_path / "ends.py").write_text("import os\nprint('{\"a\": 1}', flush=True)\nos.abort()\n")
    (tmp_path / "hangs.py").write_text("import time\nprint('noise')\ntime.sleep(60)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert run_module("ends", 60) == Answer([{"a": 1}], "the process was ended by SIGABRT")
    assert run_module("hangs", 0.5) == Answer([], "no answer within 0.5 s")


def test_nothing_is_run_from_the_current_folder(tmp_path, monkeypatch):
    """A file in a stranger's folder, named like a module that the other process imports."""
    for name in ("pyopencl", "json"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # as at a prompt
    told = run_module("hetero_bfs.doctor.trials", 60, "OpenCL")
    assert told.problem is None
    assert not (tmp_path / "ran").exists()


# Models and meters.


def test_the_models_that_are_found(trained):
    name = trained(None)
    assert by_name(check_models(None), "model").text.startswith(f"{name}, trained")
    trained(None, lambda data: data["learned"].pop("BC"))
    lacking = by_name(check_models(None), "model")
    assert lacking.stops_searches
    assert "lacks BC" in lacking.text
    trained(None, lambda data: data.update(format=99))
    assert "format 99" in by_name(check_models(None), "model").text


def test_a_machine_without_a_model(trained, monkeypatch):
    monkeypatch.setattr("hetero_bfs.scheduling.named_selectors.cpu_slug", lambda: "abacus")
    found = by_name(check_models(None), "model")
    assert found.state == "missing"
    assert found.remedy == "hetero-bfs train --quick"


def test_meters_say_what_lacks():
    for finding in check_meters(None):
        assert finding.state in ("ok", "missing", "failed")
        assert not finding.stops_searches


# MPI.


@pytest.mark.parametrize(
    ("version", "state"),
    [("HYDRA build details", "ok"), ("mpirun (Open MPI) 4.1", "failed"), ("", "ok")],
)
def test_a_launcher_of_another_mpi(monkeypatch, version, state):
    lines = [{"mpi4py": "4.1"}, {"library": "MPICH Version: 5"}]
    monkeypatch.setattr(trials, "run_module", lambda *_: Answer(lines, None))
    monkeypatch.setattr(trials, "_version", lambda _: version)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/bin/{name}")
    assert states(check_mpi())["mpirun"] == state


def test_without_mpi4py(monkeypatch):
    monkeypatch.setattr(trials, "run_module", lambda *_: Answer([], "No module 'mpi4py'"))
    (found,) = check_mpi()
    assert found.state == "missing"
    assert found.remedy == "pip install mpi4py mpich"


# Caches.


def test_the_folder_of_compiled_code(monkeypatch, tmp_path):
    kernels = tmp_path / f"hetero_bfs-{os.geteuid()}"
    kernels.mkdir(mode=0o700)
    kernels.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    private_cache.folder.cache_clear()
    private_cache._tell_of_failure.cache_clear()
    try:
        found = examine("caches", check_kept_files)
    finally:
        private_cache.folder.cache_clear()
        private_cache._tell_of_failure.cache_clear()
    assert states(found) == {"compiled code": "failed"}
    assert "others may use it" in by_name(found, "compiled code").text
