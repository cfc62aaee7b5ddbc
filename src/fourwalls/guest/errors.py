"""From the error codes of the agent to the classes of :mod:`fourwalls.model.errors`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fourwalls.guest.messages import Error
from fourwalls.model.errors import (
    CapabilityError,
    CommandStartError,
    DiskFullError,
    FileError,
    FourwallsError,
    InvalidArgumentError,
    LimitError,
    NotFoundError,
    PathExistsError,
    PathIsADirectoryError,
    PathNotADirectoryError,
    PathNotFoundError,
    PermissionDeniedError,
    ProcessNotFoundError,
    SandboxError,
)

MAX_MESSAGE: Final = 1024
"""Characters of an agent's message that are kept."""

_CLASSES: Final[dict[str, Callable[[str], FourwallsError]]] = {
    "not_found": PathNotFoundError,
    "already_exists": PathExistsError,
    "not_a_directory": PathNotADirectoryError,
    "is_a_directory": PathIsADirectoryError,
    "permission_denied": PermissionDeniedError,
    "no_space": DiskFullError,
    "invalid": InvalidArgumentError,
    "too_large": LimitError,
    "busy": FileError,
    "refused": NotFoundError,
    "unsupported": CapabilityError,
    "limit": LimitError,
    "internal": SandboxError,
}

CODES: Final = frozenset(_CLASSES) | {"start_failed"}
"""Every code an agent of this generation may send."""


def printable(text: str, limit: int = MAX_MESSAGE) -> str:
    """``text`` fit for a terminal or a log: cut at ``limit``, control characters escaped."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in cut
    )


def to_exception(error: Error, *, process: bool = False) -> FourwallsError:
    """The exception for an ERROR frame. An unknown code counts as ``internal``.

    ``process`` tells what ``not_found`` is about: a process instead of a file.
    """
    message = printable(error.message) or printable(error.code)
    if error.code == "start_failed":
        return CommandStartError(message, stage=printable(error.stage), errno=error.errno)
    if error.code == "not_found" and process:
        return ProcessNotFoundError(message)
    return _CLASSES.get(error.code, SandboxError)(message)
