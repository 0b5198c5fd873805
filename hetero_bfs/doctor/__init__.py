"""`hetero-bfs doctor`: the requirements of searches, the missing ones, and how to fix them.

At their top these modules import only the standard library, each other and modules that do the
same, so that the examination works even without NumPy. Whatever may crash or hang runs in another
process. This module has findings, and `examine`, which returns at least one of each check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.support.environment import cannot_load

State = Literal["ok", "missing", "failed"]


@dataclass(frozen=True)
class Finding:
    """The state of one item.

    text : one line
    remedy : a command or an action; empty if nothing is wrong or nothing helps
    needed : whether no search works without the item
    """

    topic: str
    name: str
    state: State
    text: str
    remedy: str = ""
    needed: bool = False

    @property
    def stops_searches(self) -> bool:
        return self.needed and self.state != "ok"


def examine(topic: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    found: list[Finding] = []
    try:
        for finding in check():
            found.append(finding)
    except ImportError as error:
        found.append(_failure(topic, f"not examined: {cannot_load(error)}"))
    except HeteroBFSError as error:
        found.append(_failure(topic, str(error)))
    except Exception as error:  # whatever fails here, the other checks run
        text = " ".join(str(error).split())
        found.append(_failure(topic, f"not examined: {type(error).__name__}: {text}"))
    return found


def _failure(topic: str, text: str) -> Finding:
    return Finding(topic, topic, "failed", text)
