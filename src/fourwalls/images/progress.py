"""What a long operation on templates tells its caller while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """``step`` is a short stable word, ``detail`` for people, ``fraction`` 0..1 if known."""

    step: str
    detail: str
    fraction: float | None = None


Report = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Tell nobody."""
