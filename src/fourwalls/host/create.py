"""Creating a sandbox: decide, claim, launch, greet. Whatever fails undoes all before it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import time
from pathlib import Path

from fourwalls.boundaries import registry
from fourwalls.boundaries.base import Plan, Running
from fourwalls.guest.errors import printable
from fourwalls.guest.session import Session
from fourwalls.host.disks import check_room, disk_template
from fourwalls.host.end import until_gone
from fourwalls.host.live import LiveSandbox
from fourwalls.host.record import SandboxRecord, boottime_deadline_ns, write_record
from fourwalls.host.remedies import remedy_for
from fourwalls.images.manifest import Manifest
from fourwalls.images.mounts import held, mounted
from fourwalls.images.store import TemplateStore
from fourwalls.linux import binaries, cgroup_tree, dirlock, slots
from fourwalls.linux.cgroup import host_layout
from fourwalls.linux.mount import is_mounted
from fourwalls.linux.places import Places
from fourwalls.linux.scope import Scope
from fourwalls.model import auto
from fourwalls.model.boundary import Boundary
from fourwalls.model.errors import FourwallsError, SandboxStartError
from fourwalls.model.ids import new_sandbox_id
from fourwalls.model.sandbox import CreateRequest

_NOFILE = 65_536


async def create(request: CreateRequest, places: Places) -> LiveSandbox:
    """A running sandbox whose agent has answered.

    Raises :class:`BoundaryUnavailableError`, :class:`TemplateNotFoundError`,
    :class:`SandboxStartError` (with the stage and what the runtime printed).
    """
    boundary, reason = _choose(request)
    manifest = TemplateStore(places).get(request.template)
    if not is_mounted(places.template_mounts / manifest.hex):
        # Once a boot the whole image is read: a second in which nothing else shall wait.
        await asyncio.to_thread(mounted, places, manifest)
    with held(places, manifest) as template, Scope() as scope:
        plan, record = _prepare(request, boundary, reason, manifest, str(template), places, scope)
        running = registry.driver(boundary).launch(plan, scope)
        # From here on the shim owns it all: it holds a duplicate of the lock, and clears away the
        # rest when it ends.
        scope.forget()
        os.close(plan.lock_fd)
        session: Session | None = None
        try:
            session = await Session.open(running.connect())
            live = LiveSandbox(places, record, session, running, plan.cgroup_layout)
            await live.greet()
        except BaseException as error:
            await _abandon(session, running, places, plan.directory)
            if session is not None and isinstance(error, FourwallsError):
                raise _start_error(error, session) from error
            raise
    return live


async def _abandon(
    session: Session | None, running: Running, places: Places, directory: Path
) -> None:
    if session is not None:
        session.close()
    with contextlib.suppress(ProcessLookupError):
        running.kill()
    await running.wait()
    # A signal that came before the shim was ready for it has ended it without a clean-up.
    await until_gone(places, directory)


def _choose(request: CreateRequest) -> tuple[Boundary, str]:
    if request.boundary is not None and request.boundary in registry.known():
        probes = {request.boundary: registry.driver(request.boundary).probe()}
    else:
        probes = registry.probe_all()
    return auto.choose(request.boundary, request.min_boundary, probes)


def _prepare(
    request: CreateRequest,
    boundary: Boundary,
    reason: str,
    manifest: Manifest,
    template: str,
    places: Places,
    scope: Scope,
) -> tuple[Plan, SandboxRecord]:
    """Claim everything the sandbox needs and write down what it is."""
    check_room(places, request.resources.disk_bytes)
    sandbox_id = new_sandbox_id()
    # Names of others' sandboxes are nobody's business; their own processes need to pass.
    for directory in (places.sandboxes, places.slots, places.scratch):
        directory.mkdir(parents=True, exist_ok=True, mode=0o711)
    # The directory comes first and goes last: whatever else carries the sandbox's name belongs to
    # nobody once there is no directory of that name.
    directory, lock_fd = dirlock.make_locked(places.sandboxes, sandbox_id)
    scope.add("sandbox directory", lambda: shutil.rmtree(directory, ignore_errors=True))
    scope.add("sandbox lock", lambda: os.close(lock_fd))
    slot, link = slots.claim(places.slots, sandbox_id)
    scope.add("id slot", lambda: slots.release(link))
    layout = host_layout()
    started_at = time.time()
    end_at = started_at + request.timeout_s
    cgroup = cgroup_tree.group_name(places.instance, sandbox_id)
    record = SandboxRecord(
        sandbox_id=sandbox_id,
        boundary=boundary.value,
        boundary_reason=reason,
        template=manifest.name,
        template_digest=manifest.digest,
        cpus=request.resources.cpus,
        memory_mib=request.resources.memory_mib,
        disk_mib=request.resources.disk_mib,
        pids=request.resources.pids,
        envs={**manifest.env, **request.envs},
        metadata=dict(request.metadata),
        user=manifest.user,
        workdir=manifest.workdir or None,
        cgroup=cgroup,
        detach=request.detach,
        started_at=started_at,
        end_at=end_at,
    )
    write_record(directory, record)
    plan = Plan(
        sandbox_id=sandbox_id,
        directory=directory,
        lock_fd=lock_fd,
        slot=link,
        template=places.template_mounts / manifest.hex,
        agent=binaries.staged(binaries.AGENT, places),
        shim=binaries.staged(binaries.SHIM, places),
        scratch_image=places.scratch / f"{sandbox_id}.img",
        disk_template=disk_template(places, request.resources.disk_mib),
        runtime_root=places.crun_root,
        uid_base=slots.id_base(slot),
        resources=request.resources,
        cgroup_layout=layout,
        cgroup=cgroup,
        lease_deadline_ns=boottime_deadline_ns(end_at),
        nofile=_nofile(),
        detach=request.detach,
    )
    return plan, record


def _nofile() -> int:
    """As many open files as most programs expect, unless our own hard limit is lower."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _NOFILE if hard == resource.RLIM_INFINITY else min(_NOFILE, hard)


def _start_error(error: FourwallsError, session: Session) -> SandboxStartError:
    """What went wrong, with what the runtime said about it."""
    gone = session.gone
    if gone.done() and not gone.cancelled() and gone.exception() is None:
        record = gone.result()
        lines = record.stderr.strip().splitlines()[-5:]
        said = "\n".join(printable(line, 400) for line in lines)
        why = printable(record.message) or record.cause.value
        message = f"the sandbox did not start: {why}"
        return SandboxStartError(
            f"{message}\n{said}".rstrip(), stage=record.stage, remedy=remedy_for(why)
        )
    return SandboxStartError(
        f"the sandbox did not start: {error.message}", remedy=remedy_for(error.message)
    )
