"""What the SDK hands out: plain values."""

from __future__ import annotations

import enum
import stat
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from fourwalls.guest.messages import Entry, Process, WatchEvent
from fourwalls.sdk.paths import to_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class CommandResult:
    """How a command ended and what it printed.

    ``exit_code`` is -1 when ``signal`` ended it. ``cause`` is ``exited``, ``signaled``,
    ``timeout``, ``oom``, ``disk_full`` or ``killed``. ``stdout_dropped`` and ``stderr_dropped``
    count bytes that were printed and are not in ``stdout`` and ``stderr``.
    """

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    error: str | None = None
    cause: str = "exited"
    signal: int | None = None
    stdout_dropped: int = 0
    stderr_dropped: int = 0


@dataclass(frozen=True)
class PtySize:
    """Of a terminal, in characters."""

    rows: int
    cols: int


@dataclass(frozen=True)
class ProcessInfo:
    """A process that a request has started and that still runs."""

    pid: int
    tag: str | None
    cmd: str
    args: list[str]
    envs: dict[str, str]
    cwd: str | None
    user: str = ""
    is_pty: bool = False


class FileType(enum.Enum):
    """What a path is."""

    FILE = "file"
    DIR = "dir"
    SYMLINK = "symlink"
    FIFO = "fifo"
    SOCKET = "socket"
    CHAR = "char"
    BLOCK = "block"


@dataclass(frozen=True)
class WriteInfo:
    """A file that was written."""

    name: str
    type: FileType | None
    path: str


@dataclass(frozen=True)
class EntryInfo(WriteInfo):
    """What is known of a path. ``size`` in bytes, ``mode`` the permission bits.

    For a symlink everything is its own; ``symlink_target`` is what it resolves to and
    ``target_type`` the kind of that.
    """

    size: int
    mode: int
    permissions: str
    owner: str
    group: str
    modified_time: datetime
    symlink_target: str | None = None
    target_type: FileType | None = None


@dataclass(frozen=True)
class WriteEntry:
    """One file for ``files.write_files``."""

    path: str
    data: object


class FilesystemEventType(enum.Enum):
    """What happened to a path."""

    CREATE = "create"
    WRITE = "write"
    REMOVE = "remove"
    RENAME = "rename"
    CHMOD = "chmod"
    OVERFLOW = "overflow"


@dataclass(frozen=True)
class FilesystemEvent:
    """A change below a watched directory; ``name`` is relative to it.

    ``OVERFLOW`` (with an empty name) means that events were lost: look at the directory again.
    """

    name: str
    type: FilesystemEventType


@dataclass(frozen=True)
class SandboxMetrics:
    """Use of resources at one moment. Sizes in bytes; ``cpu_used_pct`` 100 is one whole cpu."""

    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    cpu_count: int = 0
    cpu_used_pct: float = 0.0
    mem_total: int = 0
    mem_used: int = 0
    mem_cache: int = 0
    disk_total: int = 0
    disk_used: int = 0
    processes: int = 0


_MODES = {
    FileType.FILE: stat.S_IFREG,
    FileType.DIR: stat.S_IFDIR,
    FileType.SYMLINK: stat.S_IFLNK,
    FileType.FIFO: stat.S_IFIFO,
    FileType.SOCKET: stat.S_IFSOCK,
    FileType.CHAR: stat.S_IFCHR,
    FileType.BLOCK: stat.S_IFBLK,
}


def file_type(kind: str | None) -> FileType | None:
    """The type an agent names; None for one this version does not know."""
    try:
        return FileType(kind)
    except ValueError:
        return None


def _moment(nanoseconds: int) -> datetime:
    """A file's time. Files may carry any number: what no calendar holds becomes its edge."""
    try:
        return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return _LATEST if nanoseconds > 0 else _EARLIEST


def entry_info(entry: Entry) -> EntryInfo:
    """An agent's entry as the caller sees it."""
    kind = file_type(entry.kind)
    return EntryInfo(
        name=to_text(entry.name),
        type=kind,
        path=to_text(entry.path),
        size=entry.size,
        mode=entry.mode,
        permissions=stat.filemode(entry.mode | (_MODES[kind] if kind else stat.S_IFREG)),
        owner=entry.owner,
        group=entry.group,
        modified_time=_moment(entry.mtime_ns),
        symlink_target=None if entry.target is None else to_text(entry.target),
        target_type=file_type(entry.target_kind),
    )


def write_info(entry: Entry) -> WriteInfo:
    """The short form for a file that was written."""
    return WriteInfo(to_text(entry.name), file_type(entry.kind), to_text(entry.path))


def process_info(process: Process) -> ProcessInfo:
    """An agent's process as the caller sees it."""
    argv = [to_text(argument) for argument in process.argv]
    return ProcessInfo(
        pid=process.pid,
        tag=process.tag,
        cmd=argv[0] if argv else "",
        args=argv[1:],
        envs={name: to_text(value) for name, value in process.env.items()},
        cwd=to_text(process.cwd) or None,
        user=process.user,
        is_pty=process.pty,
    )


def filesystem_event(event: WatchEvent) -> FilesystemEvent | None:
    """An agent's event; None for a kind this version does not know."""
    try:
        kind = FilesystemEventType(event.kind)
    except ValueError:
        return None
    return FilesystemEvent(to_text(event.name), kind)
