"""Lists OpenCL drivers and devices in a separate process, since a driver may crash or hang.

Run as `python -m hetero_bfs.doctor.opencl_probe`; each output line is a JSON object. A step that
may never end is announced first, so that the reader knows where the process stopped.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from hetero_bfs.support.elsewhere import run_main, say

DEFAULT_VENDORS = "/etc/OpenCL/vendors"


def vendor_files() -> list[Path]:
    """Return the files in $OCL_ICD_VENDORS, else in the default folder."""
    place = Path(os.environ.get("OCL_ICD_VENDORS") or DEFAULT_VENDORS)
    if place.suffix == ".icd":
        return [place]
    return sorted(place.glob("*.icd")) if place.is_dir() else []


def library_of(file: Path) -> str:
    """Return the first line of a vendor's file."""
    return (file.read_text(errors="replace").strip().splitlines() or [""])[0].strip()


def main() -> None:
    for file in vendor_files():
        say(step="driver", file=str(file))
        library = ""
        try:
            library = library_of(file)
            ctypes.CDLL(library)
        except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
            say(driver=str(file), library=library, problem=str(error))
        else:
            say(driver=str(file), library=library, problem=None)
    say(step="loader")
    import pyopencl

    say(pyopencl=pyopencl.VERSION_TEXT)
    say(step="platforms")
    try:
        platforms = [(platform.name, platform.version) for platform in pyopencl.get_platforms()]
    except pyopencl.Error as error:
        say(problem=" ".join(str(error).split()))
        return
    for name, version in platforms:
        say(platform=name.strip(), version=version.strip())
    say(step="devices")
    from hetero_bfs.devices.opencl import verdicts
    from hetero_bfs.devices.opencl.driver import choose_device, list_devices

    found = list_devices()
    usable = any(device.problem is None for device in found)
    default = choose_device().index if usable else None
    for device in found:
        tests = verdicts.kept_as_json(device)
        say(device=device.to_dict(), default=device.index == default, self_test=tests)


if __name__ == "__main__":
    run_main(main)
