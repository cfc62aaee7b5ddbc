"""The bodies of the frames, one structure each, in the order of ``docs/wire/agent.md``.

What comes from the agent is checked while it is decoded: sizes and ranges stand in the types.
Keys that are unknown are ignored and keys that are missing take their default, which is how a
generation of the protocol grows.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

from fourwalls.model.errors import AgentProtocolError

GENERATION: Final = 1
MAX_ENTRIES_PER_FRAME: Final = 256

U8 = Annotated[int, Meta(ge=0, le=2**8 - 1)]
U16 = Annotated[int, Meta(ge=0, le=2**16 - 1)]
U32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
U64 = Annotated[int, Meta(ge=0)]
Pid = Annotated[int, Meta(ge=1, le=2**31 - 1)]
I32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
I64 = Annotated[int, Meta(ge=-(2**63))]
Word = Annotated[str, Meta(max_length=64)]
Line = Annotated[str, Meta(max_length=4096)]
Name = Annotated[bytes, Meta(max_length=4096)]
Path = Annotated[bytes, Meta(max_length=65536)]
Nonce = Annotated[bytes, Meta(min_length=16, max_length=16)]
Argv = Annotated[list[bytes], Meta(max_length=65536)]
Environment = Annotated[dict[str, bytes], Meta(max_length=65536)]


class Message(msgspec.Struct, kw_only=True):
    """Base of every body."""


MessageType = TypeVar("MessageType", bound=Message)


def encode(message: Message) -> bytes:
    """The MessagePack map of a body."""
    return msgspec.msgpack.encode(message)


def decode(body: memoryview | bytes, message: type[MessageType]) -> MessageType:
    """The body as ``message``; :class:`AgentProtocolError` when it is anything else."""
    try:
        return msgspec.msgpack.decode(body, type=message)
    except (msgspec.MsgspecError, RecursionError, MemoryError, UnicodeError) as error:
        raise AgentProtocolError(
            f"the agent sent a malformed {message.__name__}: {str(error)[:200]}"
        ) from None


# Both ways.


class Credit(Message):
    bytes: U64 = 0


# Towards the agent.


class HelloLimits(Message):
    """``nproc`` and ``ring_bytes`` of 0 mean: as the agent thinks best."""

    nproc: U64 = 0
    oom_score_adj: I32 = 0
    ring_bytes: U64 = 0


class Hello(Message):
    generation_min: U32 = GENERATION
    generation_max: U32 = GENERATION
    nonce: Nonce = bytes(16)
    env: dict[str, bytes] = msgspec.field(default_factory=dict)
    user: str = "root"
    workdir: bytes | None = None
    limits: HelloLimits = msgspec.field(default_factory=HelloLimits)


class PtySize(Message):
    cols: U16 = 80
    rows: U16 = 24


class ExecStart(Message):
    argv: list[bytes] = msgspec.field(default_factory=list)
    env: dict[str, bytes] = msgspec.field(default_factory=dict)
    cwd: bytes | None = None
    user: str | None = None
    stdin: bool = False
    pty: PtySize | None = None
    tag: str | None = None
    timeout_ms: U64 = 0
    credit: U64 = 0
    rlimits: dict[str, tuple[U64, U64]] = msgspec.field(default_factory=dict)


class ExecAttach(Message):
    pid: U32 | None = None
    tag: str | None = None
    offsets: tuple[U64, U64] | None = None
    credit: U64 = 0


class ExecInput(Message):
    pid: U32 | None = None
    tag: str | None = None
    data: bytes = b""


class ExecCloseStdin(Message):
    pid: U32 | None = None
    tag: str | None = None


class ExecResize(Message):
    pid: U32 | None = None
    tag: str | None = None
    cols: U16 = 80
    rows: U16 = 24


class ExecSignal(Message):
    pid: U32 | None = None
    tag: str | None = None
    signal: U8 = 0
    tree: bool = False


class ExecList(Message):
    pass


class FileStat(Message):
    path: bytes = b""


class FileList(Message):
    path: bytes = b""
    depth: U32 = 1


class FileRead(Message):
    path: bytes = b""
    offset: U64 = 0
    length: U64 | None = None
    credit: U64 = 0


class FileWrite(Message):
    path: bytes = b""
    user: str | None = None
    mode: U32 | None = None
    append: bool = False


class FileMkdir(Message):
    path: bytes = b""
    user: str | None = None
    mode: U32 | None = None


class FileMove(Message):
    source: bytes = b""
    destination: bytes = b""
    user: str | None = None


class FileRemove(Message):
    path: bytes = b""


class FileChange(Message):
    path: bytes = b""
    mode: U32 | None = None
    user: str | None = None


class FileWatch(Message):
    path: bytes = b""
    recursive: bool = False


class TunnelDial(Message):
    port: U16 = 0
    credit: U64 = 0


class MetricsRequest(Message):
    pass


class Shutdown(Message):
    grace_ms: U64 = 0


# Towards the host.


class HelloOk(Message):
    generation: U32 = 0
    nonce: bytes = b""
    version: Line = ""
    kernel: Line = ""
    pid: U32 = 0


class Error(Message):
    code: Word = "internal"
    errno: I32 = 0
    stage: Word = ""
    message: str = ""


class Started(Message):
    pid: Pid
    offsets: tuple[U64, U64] = (0, 0)


class Exit(Message):
    """How a process ended. ``code`` is -1 when ``signal`` says which signal did it."""

    code: Annotated[int, Meta(ge=-1, le=255)] = 0
    signal: Annotated[int, Meta(ge=0, le=127)] = 0
    timed_out: bool = False
    core: bool = False
    disk_full: bool = False


class Process(Message):
    pid: Pid
    tag: Line | None = None
    argv: Argv = msgspec.field(default_factory=list)
    env: Environment = msgspec.field(default_factory=dict)
    cwd: Path = b""
    user: Line = ""
    pty: bool = False
    running: bool = False
    code: I32 = 0
    signal: I32 = 0


class ProcessList(Message):
    processes: Annotated[list[Process], Meta(max_length=4096)] = msgspec.field(default_factory=list)


class Entry(Message):
    """A file as the agent sees it; ``mode`` and the rest are the link's own for a symlink."""

    name: Name
    path: Path
    kind: Word = "file"
    size: U64 = 0
    mode: Annotated[int, Meta(ge=0, le=0o7777)] = 0
    uid: U32 = 0
    gid: U32 = 0
    owner: Line = ""
    group: Line = ""
    mtime_ns: I64 = 0
    target: Path | None = None
    target_kind: Word | None = None


class Entries(Message):
    entries: Annotated[list[Entry], Meta(max_length=MAX_ENTRIES_PER_FRAME)] = msgspec.field(
        default_factory=list
    )


class MkdirResult(Message):
    created: bool
    entry: Entry


class RemoveResult(Message):
    existed: bool = False


class StartedRead(Message):
    size: U64 = 0


class WatchEvent(Message):
    kind: Word
    name: Path = b""


class Events(Message):
    events: Annotated[list[WatchEvent], Meta(max_length=16384)] = msgspec.field(
        default_factory=list
    )
    overflow: bool = False


class Metrics(Message):
    """Sizes in bytes, ``uptime_ms`` in milliseconds."""

    cpu_count: U32 = 0
    mem_total: U64 = 0
    mem_used: U64 = 0
    mem_cache: U64 = 0
    disk_total: U64 = 0
    disk_used: U64 = 0
    processes: U32 = 0
    uptime_ms: U64 = 0
