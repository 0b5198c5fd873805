"""The folder of this checkout."""

from __future__ import annotations

from pathlib import Path

TOP = Path(__file__).parents[2]
