"""The undo stack: whatever is acquired registers its release at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self


class Scope:
    """Releases in reverse order. Every release is tried; their errors are raised together.

    A release registered after the scope was closed runs at once, so that a late acquisition
    cannot leak.
    """

    def __init__(self) -> None:
        self._releases: list[tuple[str, Callable[[], object]]] = []
        self._closed = False

    def add(self, what: str, release: Callable[[], object]) -> None:
        """Register ``release`` for the thing named ``what`` (named in errors)."""
        if self._closed:
            release()
            return
        self._releases.append((what, release))

    def forget(self) -> None:
        """Give ownership away: nothing registered so far is released here any more."""
        self._releases.clear()

    def close(self) -> None:
        """Release everything, last acquired first."""
        self._closed = True
        errors: list[Exception] = []
        while self._releases:
            what, release = self._releases.pop()
            try:
                release()
            except Exception as error:
                error.add_note(f"while releasing {what}")
                errors.append(error)
        if errors:
            raise ExceptionGroup("releasing failed", errors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
