"""What only root may see or do."""

from __future__ import annotations

import os

from fourwalls.model.errors import SandboxError


def require_root() -> None:
    """Refuse to go on as anybody else: half an answer would look like a whole one."""
    if os.geteuid() != 0:
        raise SandboxError(
            "the sandboxes of this host belong to root", remedy="run as root (sudo fourwalls …)"
        )
