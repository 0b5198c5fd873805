"""The words of docs/glossary.md, and habits of style that readers stumbled on."""

from __future__ import annotations

import re

import pytest
from checkout import TOP

TEXTS = [
    path
    for pattern in ("hetero_bfs/**/*.py", "hetero_bfs/**/*.cl", "training/*.py", "docs/**/*.md")
    for path in sorted(TOP.glob(pattern))
    if not {"notes", "_build"} & set(path.parts)
] + [TOP / "README.md"]

INSTEAD = {
    r"(?<!here )\bis no (?!longer\b|more\b|part\b|one\b)\w+": "is not a ...",
    r"\bso many\b": "that many, or the number",
    r"\bequal ones\b": "the noun again",
    r"\bby turns\b": "alternately, or the order",
    r"\bthe latter\b": "the noun again",
    r"\btold\b": "outbox, sent, or answered",
    r"\bside by side\b": "multi-source, or 64 at once",
    r"\b[Tt]hose of\b": "the noun again, or its possessive",
    r"\b[Bb]eside\b": "next to, with, besides, or in the background",
    r"\bin turn\b": "alternately, interleaved, or one after the other",
}
"""Words to avoid, and what to say."""


@pytest.mark.parametrize("words", INSTEAD)
def test_words_to_avoid(words):
    found = []
    for path in TEXTS:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(words, line):
                found.append(f"{path.relative_to(TOP)}:{number}: {line.strip()}")
    assert not found, f"say {INSTEAD[words]!r}:\n" + "\n".join(found)
