"""``fourwalls list``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from fourwalls.cli import output

if TYPE_CHECKING:
    from fourwalls.model.sandbox import SandboxInfo


@click.command("list")
@click.option("-q", "--quiet", is_flag=True, help="Only the ids, one a line.")
@output.json_option
def list_(quiet: bool, as_json: bool) -> None:
    """List the sandboxes of this host, whoever made them, the oldest first."""
    from fourwalls.host.listing import running_sandboxes
    from fourwalls.host.root import require_root
    from fourwalls.linux.places import Places

    require_root()
    found = running_sandboxes(Places.from_environment())
    if as_json:
        output.data_json([_document(info) for info in found])
    elif quiet:
        for info in found:
            output.data(info.sandbox_id)
    elif not found:
        output.words("No sandboxes run here.")
    else:
        _show(found)


def _show(found: list[SandboxInfo]) -> None:
    now = time.time()
    table = output.table(["id", "boundary", "template", "size", "age", "ends in"])
    for info in found:
        limits = info.resources
        table.add_row(
            info.sandbox_id,
            info.boundary.value,
            info.template,
            f"{limits.cpus:g} cpu, {limits.memory_mib} MiB, {limits.disk_mib} MiB disk",
            _duration(now - info.started_at),
            _duration(info.end_at - now),
        )
    output.show(table)


def _duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    return f"{whole // 3600} h"


def _document(info: SandboxInfo) -> dict[str, Any]:
    return {
        "sandbox_id": info.sandbox_id,
        "boundary": info.boundary.value,
        "reason": info.boundary_reason,
        "template": info.template,
        "template_digest": info.template_digest,
        "cpus": info.resources.cpus,
        "memory_mib": info.resources.memory_mib,
        "disk_mib": info.resources.disk_mib,
        "pids": info.resources.pids,
        "metadata": dict(info.metadata),
        "started_at": info.started_at,
        "end_at": info.end_at,
    }
