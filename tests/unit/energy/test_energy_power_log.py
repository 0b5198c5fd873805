"""The log of an external power meter: its formats, its gaps, waiting for it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from energy_fakes import by_name, zone

from hetero_bfs.energy import MeterError, PowerLog, Unmeasured, find_meters


def log_of(tmp_path, text):
    path = tmp_path / "meter.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return PowerLog(path)


@pytest.mark.parametrize(
    "text",
    [
        "1000,10\n1001,30\n1002,30\n",
        "\ufefftimestamp,watts\r\n1000,10\r\n1001,30\r\n1002,30\r\n",
        "No,P [W],U,Time (s)\n1,10,230,1000\n2,30,230,1001.0\n\n3,30,230,1.002e3\n",
        "Date, Power\n1970-01-01T00:16:40Z, 10\n1970-01-01 01:16:41+01:00, 30\n1002, 30\n",
        "1000,10\n1001,30\n1002,30\n1003,3",  # the last line is still being written
        "time,power_mW,power factor\n1000,10000,1\n1001,30000,1\n1002,30000,1\n",
        "kW,Elapsed time,Time\n0.01,0,1000\n0.03,1,1001\n0.03,2,1002\n".replace("kW", "P (kW)"),
    ],
)
def test_log_forms(tmp_path, text):
    log = log_of(tmp_path, text)
    assert log.samples() == ([1000.0, 1001.0, 1002.0], [10.0, 30.0, 30.0])
    assert log.joules(1000, 1002) == 20.0 + 30.0
    assert log.resolution_seconds == 1.0


@pytest.mark.parametrize(
    "text",
    [
        # Headers as the manuals of Yokogawa's CW120 and Hioki's PW8001 and scripts for Tasmota's
        # plugs have them; no such meter was at hand.
        '"CW12x"\n"File Type",2\n"MeasureMode",1\n'
        '"OUTPUT DATE","OUTPUT TIME","INTEG START TIME","V1","I1","P","Q","PF","F"\n'
        "2024/05/06,07:08:09,07:00:00,230,0.1,10,0,1,50\n"
        "2024/05/06,07:08:10,07:00:00,230,0.1,30,0,1,50\n",
        "Date,Time,Status,Urms1,P\n2024/05/06,07:08:09,0,230,10\n2024/05/06,07:08:10,0,230,30\n",
        "Time, Total, Today, Power, Voltage, Current\n"
        '"2024-05-06T07:08:09",0.03,0.03,10,227,0.28\n"2024-05-06T07:08:10",0.03,0.03,30,227,0.28\n',
    ],
    ids=["Yokogawa", "Hioki", "Tasmota"],
)
def test_logs_of_common_meters(tmp_path, text):
    first = datetime(2024, 5, 6, 7, 8, 9).timestamp()
    assert log_of(tmp_path, text).samples() == ([first, first + 1], [10.0, 30.0])


def test_a_stamp_without_zone_is_local_time(tmp_path):
    log = log_of(tmp_path, "2024-05-06T07:08:09.5,10\n2024-05-06 07:08:10,10\n")
    local = datetime(2024, 5, 6, 7, 8, 9, 500_000).timestamp()
    assert log.samples()[0] == [local, local + 0.5]


def test_log_interpolates_at_both_ends(tmp_path):
    log = log_of(tmp_path, "1000,0\n1002,20\n1004,20\n")
    assert log.joules(1001, 1003) == 15.0 + 20.0
    assert log.joules(1000.5, 1001.5) == 10.0


def test_log_with_two_samples_of_one_stamp(tmp_path):
    log = log_of(tmp_path, "1000,10\n1001,10\n1001,50\n1002,50\n")
    assert log.joules(1000, 1002) == 60.0


@pytest.mark.parametrize(("start", "end"), [(999.0, 1001.0), (1001.0, 1002.5)])
def test_log_that_does_not_cover_names_both_intervals(tmp_path, start, end):
    found = log_of(tmp_path, "1000,1\n1002,1\n").joules(start, end)
    assert isinstance(found, Unmeasured)
    assert (found.name, found.domain) == ("power log meter.csv", "system")

    def local(stamp):
        moment = datetime.fromtimestamp(stamp, UTC).astimezone()
        return moment.isoformat(timespec="milliseconds")

    assert found.reason == (
        f"the log covers {local(1000)} to {local(1002)}; "
        f"the measurement lasts from {local(start)} to {local(end)}"
    )


def test_log_without_samples(tmp_path):
    found = log_of(tmp_path, "time,watts\n").joules(1000, 1001)
    assert found.reason.startswith("the log has no samples; the measurement lasts from")


def test_log_with_a_gap(tmp_path):
    stamps = [*range(1000, 1010), *range(1040, 1050)]
    log = log_of(tmp_path, "".join(f"{stamp},10\n" for stamp in stamps))
    assert log.joules(1001, 1009) == 80.0
    assert log.joules(1041, 1044) == 30.0
    for start, end in [(1005, 1045), (1005, 1020), (1015, 1020), (1020, 1045)]:
        found = log.joules(start, end)
        assert isinstance(found, Unmeasured)
        assert "the log has nothing between" in found.reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,watts\n1000,10\n1001,OVER\n", "line 3: 'OVER' is not a number of watts"),
        ("1000,nan\n", "line 1: 'nan' is not a number of watts"),
        ("1000,-3\n", "line 1: '-3' is not a number of watts"),
        ("1000,1\n\nnoon,1\n", "line 3: 'noon' is not a time stamp"),
        ("1700000000000,1\n", "line 1: '1700000000000' is not a time stamp in Unix seconds"),
        ("1000,1\n1001\n", "line 2: '1001' has no column 2"),
        ("1001,1\n1000,1\n", "line 2: time stamp '1000' is before the last one"),
        ("time,volts\n", "line 1: 'time,volts' must name one column time and one watts"),
        ("date,date,w\n", "line 1: 'date,date,w' must name one column time and one watts"),
        (b"\xff\xfe,1\n", "cannot be read"),
        ("1000,1e300\n", "line 1: '1e300' is not a number of watts"),
        ("1000,1\n2999-01-01,1\n", "line 2: '2999-01-01' is in the future"),
        (f"1000,{'1' * 200_000}\n", "line 1: field larger than field limit"),
        (
            "1000,1\n2100,1\n3200,1\n",
            "a sample every 1.1e+03 s; samples must be at most 60 s apart",
        ),
    ],
)
def test_log_errors_name_file_line_and_value(tmp_path, text, message):
    with pytest.raises(MeterError) as raised:
        log_of(tmp_path, text)
    assert message in str(raised.value)
    assert "meter.csv" in str(raised.value)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_log_that_is_no_regular_file():
    with pytest.raises(MeterError, match="it is not a regular file"):
        PowerLog(Path("/dev/zero"))


def test_log_that_does_not_exist(tmp_path):
    with pytest.raises(MeterError, match=r"none\.csv cannot be read"):
        find_meters(None, power_log=tmp_path / "none.csv", sysfs=tmp_path)


def test_log_meter_waits_for_the_log_to_reach_the_end(tmp_path, clock, monkeypatch):
    log = log_of(tmp_path, f"{clock.now - 1},50\n{clock.now},50\n")
    end = clock.now + 3

    def sleep(seconds):  # the meter writes on while we wait
        clock.now += seconds
        if clock.now > end + 0.25:
            log.path.write_text(f"{end - 4},50\n{end - 2},50\n{end + 0.25},50\n")

    log.start()
    clock.sleep(3)
    monkeypatch.setattr(clock, "sleep", sleep)
    assert log.stop() == 150.0


def test_log_meter_gives_up(tmp_path, clock):
    log = log_of(tmp_path, f"{clock.now - 1},50\n{clock.now},50\n")
    log.start()
    clock.sleep(3)
    with pytest.raises(MeterError, match="the log covers"):
        log.stop()
    assert clock.now >= 1_700_000_003 + log.patience_seconds


def test_find_meters_puts_the_log_last_in_the_system_domain(tmp_path):
    zone(tmp_path, "0", "package-0")
    log = log_of(tmp_path, "1000,1\n")
    meters, unmeasured = find_meters(None, power_log=log.path, sysfs=tmp_path)
    assert [m.domain for m in meters] == ["cpu", "system"]
    assert "system" not in [m.domain for m in unmeasured]


def test_the_whole_system_is_unmeasured_without_log_and_psys(tmp_path):
    found = by_name(find_meters(None, sysfs=tmp_path)[1])["whole system"]
    assert found.domain == "system"
    assert found.reason.startswith("absent: no power log given and no psys zone under")
