"""Energy of searches, from NVML, RAPL, hwmon and the log of an external power meter.

Every meter belongs to one domain: "cpu" (processor packages and their memory), "device" (the OpenCL
device's board) or "system" (the whole machine: psys, a Jetson module's input, or a meter at the
wall). Domains are never added up, since the system contains the other two. A missing measurement is
an `Unmeasured` with its reason, never 0.

`meters` has the types, the sensor, and measurements with their reports; `power_log` the external
meter. `discover` finds this machine's meters.
"""

from hetero_bfs.energy.discover import find_meters
from hetero_bfs.energy.meters import (
    Domain,
    EnergyReport,
    Meter,
    MeterError,
    MeterReading,
    SensorMeter,
    Unmeasured,
    format_report,
    measure,
)
from hetero_bfs.energy.power_log import PowerLog

__all__ = [
    "Domain",
    "EnergyReport",
    "Meter",
    "MeterError",
    "MeterReading",
    "PowerLog",
    "SensorMeter",
    "Unmeasured",
    "find_meters",
    "format_report",
    "measure",
]
