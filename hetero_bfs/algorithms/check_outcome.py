"""The outcome of a check of a result."""

from __future__ import annotations

from dataclasses import dataclass

from hetero_bfs.errors import ValidationError


@dataclass(frozen=True)
class CheckOutcome:
    """Whether a result is valid, and a message of one line."""

    valid: bool
    message: str

    def raise_if_invalid(self) -> None:
        """Raise `ValidationError` unless the result is valid."""
        if not self.valid:
            raise ValidationError(self.message)
