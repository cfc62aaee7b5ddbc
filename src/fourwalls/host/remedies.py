"""What to do about what a host answers: from the words of an error to a remedy."""

from __future__ import annotations

_REMEDIES = {
    "No space left on device": "free some space in the state directory (FOURWALLS_STATE)",
    "Read-only file system": "let FOURWALLS_STATE and FOURWALLS_RUN name directories for writing",
    # The kernel forbids it to whoever lives in a chroot; seccomp to whoever lives in a container.
    "clone: Operation not permitted": (
        "this process may not make user namespaces: leave the chroot or container it runs in"
    ),
}


def remedy_for(said: str) -> str | None:
    """The remedy for the first known cause in ``said``."""
    return next((remedy for words, remedy in _REMEDIES.items() if words in said), None)
