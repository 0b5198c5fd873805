"""The script that runs the device suite on many OpenCL implementations: rows, tables, commands."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from implementations import chroots, suite, table
from implementations.__main__ import is_failure, parse, summary
from implementations.setups import DRIVERS, RELEASES, SETUPS, STARTS

XML = """<testsuites><testsuite>
<testcase classname="tests.device.test_pagerank" name="a"><failure message="wrong"/></testcase>
<testcase classname="tests.device.test_pagerank" name="b"><error message="gone"/></testcase>
<testcase classname="tests.device.test_policy" name="c"/>
<testcase classname="tests.device.test_policy" name="d"><skipped message="none"/></testcase>
</testsuite></testsuites>"""


def test_counts_of_a_run():
    row = suite.counts(ElementTree.ElementTree(ElementTree.fromstring(XML)))
    assert row == {"passed": 1, "failed": 2, "skipped": 1, "note": "2 of test_pagerank"}
    assert is_failure(row)
    assert summary(row) == "1 passed; 2 failed; 1 skipped; 2 of test_pagerank"


@pytest.mark.parametrize("row", [{"note": "no device"}, {"passed": 0, "failed": 0}, {"passed": ""}])
def test_a_run_of_no_test_is_a_failure(row):
    assert is_failure(row)


def row_of(name, **fields):
    return {
        "name": name,
        "part": "whole",
        "passed": 2003,
        "failed": 0,
        "date": "2026-11-26",
    } | fields


def test_a_row_takes_the_place_of_the_earlier_one(tmp_path):
    rows, page = tmp_path / "rows.csv", tmp_path / "page.md"
    page.write_text(f"# Title\n\n{table.BEGIN}\n\nold\n\n{table.END}\n\nThe end.\n")
    table.keep(row_of("debian13/pocl", commit="old"), rows, page)
    table.keep(row_of("gpu"), rows, page)
    table.keep(row_of("debian12/pocl", part="fast"), rows, page)
    table.keep(row_of("debian12/pocl", version="3.1 | other"), rows, page)
    table.keep(row_of("debian13/pocl", commit="new", failed=3, note="3 of test_policy"), rows, page)
    kept = table.read(rows)
    assert [(row["name"], row["part"], row["commit"]) for row in kept] == [
        ("debian12/pocl", "fast", ""),
        ("debian12/pocl", "whole", ""),
        ("debian13/pocl", "whole", "new"),
        ("gpu", "whole", ""),
    ]
    text = page.read_text()
    assert text.startswith(f"# Title\n\n{table.BEGIN}\n")
    assert text.endswith(f"{table.END}\n\nThe end.\n")
    assert "old" not in text
    assert "| 2,003 passed, 3 failed (3 of test_policy) |" in text
    columns = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert columns == {len(table.HEADS) + 1}


def test_the_page_has_the_tables_of_the_rows():
    page = table.PAGE.read_text()
    assert page.count(table.BEGIN) == page.count(table.END) == 1
    assert table.tables(table.read()) in page


def test_setups_name_what_there_is():
    assert {setup.split("/")[0] for setup in SETUPS} | set(STARTS) <= set(RELEASES)
    assert {setup.split("/")[1] for setup in SETUPS} == set(DRIVERS)
    tests = [*suite.FAST, *(name for driver in DRIVERS.values() for name in driver.tests)]
    assert all((chroots.CHECKOUT / name).exists() for name in tests)


@pytest.mark.parametrize("words", [["debian13/voodoo"], ["--add", "row.json"], ["--name", "gpu"]])
def test_wrong_usage(words, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "row.json" in said or "debian13/pocl" in said


def test_a_step_is_done_until_its_inputs_change(tmp_path):
    (tmp_path / "srv").mkdir()
    with pytest.raises(ZeroDivisionError), chroots.Stamp(tmp_path, "venv", "numpy"):
        raise ZeroDivisionError
    with chroots.Stamp(tmp_path, "venv", "numpy") as stamp:
        assert not stamp.is_done
    assert chroots.Stamp(tmp_path, "venv", "numpy").is_done
    assert not chroots.Stamp(tmp_path, "venv", "numpy", "scipy").is_done


def test_a_driver_alone_is_seen_by_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    intel = DRIVERS["intel"]
    file = tmp_path / "hetero_bfs_implementations" / intel.wheels[0] / "lib" / intel.library
    file.parent.mkdir(parents=True)
    file.touch()
    variables = suite.limited_to(intel, tmp_path)
    (vendor,) = (tmp_path / "vendors").iterdir()
    assert vendor.read_text().strip() == str(file)
    assert variables["OCL_ICD_VENDORS"] == str(vendor.parent)
    assert variables["LD_LIBRARY_PATH"] == str(file.parent)
