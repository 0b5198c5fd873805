"""A page as Chromium shows it: its boxes and texts, what it loads, and a picture of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

_NAMES = "chromium", "chromium-browser", "google-chrome"
_MEASURE = """<pre id="measured"></pre><script>
const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom] };
const found = [...document.querySelectorAll("svg")].map(svg => ({
  frame: box(svg),
  lanes: [...svg.querySelectorAll(":scope > text")].map(e => e.textContent),
  spans: [...svg.querySelectorAll("g")].map(g => ({
    told: g.querySelector("title").textContent,
    rect: box(g.querySelector("rect")),
    text: g.querySelector("text") && box(g.querySelector("text")),
  })),
}));
document.getElementById("measured").textContent = JSON.stringify({
  svgs: found,
  loaded: performance.getEntriesByType("resource").map(e => e.name)
    .filter(name => !name.startsWith("data:")),
  broken: [...document.images].filter(i => !i.naturalWidth).map(i => i.alt),
});
</script>"""


def chromium() -> str:
    """Return the browser's path, or skip the test."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip("no Chromium; Debian: apt-get install chromium")
    return found


def measured(page: Path, folder: Path) -> dict[str, Any]:
    """Return what the browser says of a page's SVG elements and of what it loaded."""
    copy = folder / "measured.html"
    copy.write_text(page.read_text().replace("</body>", f"{_MEASURE}</body>"))
    dom = _browse(folder, "--dump-dom", copy.as_uri())
    text = re.search(r'<pre id="measured">(.*?)</pre>', dom, re.DOTALL)
    assert text is not None
    return json.loads(unescape(text[1]))


def picture(page: Path, folder: Path) -> bytes:
    """Return a PNG of the page."""
    _browse(folder, f"--screenshot={folder / 'page.png'}", "--window-size=1000,800", page.as_uri())
    return (folder / "page.png").read_bytes()


def _browse(folder: Path, *arguments: str) -> str:
    quiet = ["--headless", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/user"]
    quiet += ["--no-sandbox"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [chromium(), *quiet, *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout
