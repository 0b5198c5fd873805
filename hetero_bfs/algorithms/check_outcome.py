"""What the check of a result found."""

from __future__ import annotations

from dataclasses import dataclass

from hetero_bfs.errors import ValidationError


@dataclass(frozen=True)
class CheckOutcome:
    """What a check found; `message` says it in a line."""

    valid: bool
    message: str

    def raise_if_invalid(self) -> None:
        """Raise `ValidationError` unless the result is valid."""
        if not self.valid:
            raise ValidationError(self.message)
