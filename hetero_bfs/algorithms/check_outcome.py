"""The outcome of a result's check."""

from __future__ import annotations

from dataclasses import dataclass

from hetero_bfs.errors import ValidationError


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of a check; `message` is one line."""

    valid: bool
    message: str

    def raise_if_invalid(self) -> None:
        """Raise `ValidationError` unless the result is valid."""
        if not self.valid:
            raise ValidationError(self.message)
