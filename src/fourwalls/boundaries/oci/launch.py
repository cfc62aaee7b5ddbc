"""Starting a rendered OCI sandbox: write the bundle, start the shim."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from fourwalls.boundaries.base import Plan, Running
from fourwalls.boundaries.oci.sandbox_files import SandboxFiles
from fourwalls.boundaries.shim.launch import start_shim
from fourwalls.boundaries.shim.spec import LaunchSpec
from fourwalls.linux.scope import Scope


def launch_oci(plan: Plan, config: dict[str, Any], spec: LaunchSpec, scope: Scope) -> Running:
    """Write ``config.json`` and start the shim. The sandbox directory's owner removes both."""
    files = SandboxFiles(plan.directory)
    os.mkdir(files.bundle, 0o700)
    files.config.write_bytes(msgspec.json.encode(config))
    return start_shim(plan.shim, spec, plan.lock_fd, scope)
