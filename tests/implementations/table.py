"""The rows of all runs: a CSV file, and the tables in the documentation, written from it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from .setups import SETUPS, STARTS

CHECKOUT = Path(__file__).resolve().parents[2]
ROWS = CHECKOUT / "benchmarks" / "results" / "implementations.csv"
PAGE = CHECKOUT / "docs" / "development" / "implementations.md"
BEGIN, END = "<!-- begin of what the script writes -->", "<!-- end of what the script writes -->"
COLUMNS = (
    "name",
    "part",
    "implementation",
    "version",
    "device",
    "system",
    "python",
    "passed",
    "failed",
    "skipped",
    "note",
    "seconds",
    "commit",
    "date",
)
HEADS = (
    "setup",
    "implementation",
    "version",
    "device",
    "system, Python",
    "result",
    "seconds",
    "commit",
    "date",
)
PARTS = {
    "whole": "The whole of `tests/device`",
    "fast": "The fast part",
    "start": "`./start run --scale 14` on a bare system",
}
Row = dict[str, Any]


def read(path: Path = ROWS) -> list[Row]:
    """Return all rows; none where the file is missing."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def keep(row: Row, rows: Path = ROWS, page: Path = PAGE) -> None:
    """Put a row in place of the earlier one of the same setup and part, and write the tables."""
    key = (row["name"], row["part"])
    kept = [old for old in read(rows) if (old["name"], old["part"]) != key]
    order = [*SETUPS, *(f"{release}/start" for release in STARTS)]
    rank = {name: place for place, name in enumerate(order)}
    kept.append({name: str(row.get(name, "")) for name in COLUMNS})
    kept.sort(key=lambda one: (rank.get(one["name"], len(rank)), one["name"], one["part"]))
    with rows.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{tables(kept)}\n{END}{after}")


def tables(rows: list[Row]) -> str:
    """Return the tables in Markdown, one for each part."""
    text = []
    for part, title in PARTS.items():
        chosen = [row for row in rows if row["part"] == part]
        if chosen:
            lines = [f"### {title}", "", _line(HEADS), "|" + " --- |" * len(HEADS)]
            text += [*lines, *(_line(_cells(row)) for row in chosen), ""]
    return "\n".join(text)


def _cells(row: Row) -> list[str]:
    words = ("passed", "failed", "skipped") if row["part"] != "start" else ()
    counted = [f"{int(row[word]):,} {word}" for word in words if row[word]]
    result = ", ".join(counted) + (f" ({row['note']})" if counted and row["note"] else "")
    return [
        row["name"],
        row["implementation"],
        row["version"],
        row["device"],
        f"{row['system']}, {row['python']}",
        result or row["note"],
        str(row["seconds"]),
        row["commit"],
        row["date"],
    ]


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"
