"""The names of CPU architectures, as Debian and OCI images agree on."""

from __future__ import annotations

import os

_BY_MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}


def host_architecture() -> str:
    """``amd64`` or ``arm64``; the kernel's own word for any other."""
    machine = os.uname().machine
    return _BY_MACHINE.get(machine, machine)
