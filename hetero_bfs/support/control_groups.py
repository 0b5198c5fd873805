"""Linux control groups, with which containers and batch systems limit processes.

Version 2 has one hierarchy of groups, version 1 one for each kind of limit. A process is limited by
its group and by all groups above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_MEMBERSHIPS = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")


def groups(controller: str) -> Iterator[tuple[Path, bool]]:
    """Yield the folders whose files may limit this process, and whether they are of version 2.

    `controller` is version 1's name of the kind of limit. In a container only the mount point may
    exist, which then is the folder of the process's group.
    """
    try:
        lines = _MEMBERSHIPS.read_text(errors="replace").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        top = _MOUNT / controller if controllers else _MOUNT
        inside = Path(path.lstrip("/"))
        for folder in (inside, *inside.parents):
            yield top / folder, not controllers
