"""The fields of a command's JSON, and those that docs/guide/json.md lists for it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from checkout import TOP

PAGE = TOP / "docs" / "guide" / "json.md"
_ROW = re.compile(r"^\| `([^`]+)` \|")


def fields_of(value: Any, name: str = "") -> set[str]:
    """Return the names of all values; `a.b` is b of the object a, `a[]` an entry of the list a."""
    inner: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        inner = ((f"{name}.{key}" if name else key, one) for key, one in value.items())
    elif isinstance(value, list):
        inner = ((f"{name}[]", one) for one in value if isinstance(one, dict))
    found = [fields_of(one, key) for key, one in inner]
    return set().union(*found) if found else {name}


def sections() -> dict[str, set[str]]:
    """Return the listed fields by heading; `a.*` stands for all names below a."""
    found: dict[str, set[str]] = {}
    heading = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ").strip("`")
        elif (row := _ROW.match(line)) is not None:
            found.setdefault(heading, set()).add(row[1])
    return found


def differences(seen: set[str], listed: set[str]) -> list[str]:
    """Compare fields of JSON with listed ones.

    A listed field may be absent where the object or the list that holds it is null or empty.
    """
    empty = {holder for field in listed for holder in _holders(field)}
    more = [field for field in sorted(seen - empty) if not _covers(listed, field)]
    less = [
        field
        for field in sorted(listed)
        if not (any(_covers({field}, one) for one in seen) or seen.intersection(_holders(field)))
    ]
    return [f"{one} is not on the page" for one in more] + [
        f"{one} is on the page only" for one in less
    ]


def _covers(listed: set[str], field: str) -> bool:
    return field in listed or any(f"{holder}.*" in listed for holder in _holders(field))


def _holders(field: str) -> list[str]:
    """Return the objects and lists that hold a field: of `a[].b.c` they are `a[].b`, `a[]`, `a`."""
    parts = re.split(r"(\.|\[\])", field)
    return ["".join(parts[:i]) for i in range(len(parts) - 1, 0, -1) if parts[i - 1] != "."]
