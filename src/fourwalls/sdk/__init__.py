"""The Python SDK. The async half is written, the sync half is a thin layer over it."""

from __future__ import annotations

from fourwalls.sdk.asynchronous.commands import AsyncCommands
from fourwalls.sdk.asynchronous.files import AsyncFiles
from fourwalls.sdk.asynchronous.handle import AsyncCommandHandle
from fourwalls.sdk.asynchronous.pty import AsyncPty
from fourwalls.sdk.asynchronous.sandbox import AsyncSandbox
from fourwalls.sdk.asynchronous.tunnel import AsyncTunnel
from fourwalls.sdk.asynchronous.watch import AsyncWatchHandle
from fourwalls.sdk.synchronous.commands import Commands
from fourwalls.sdk.synchronous.files import Files, WatchHandle
from fourwalls.sdk.synchronous.handle import CommandHandle
from fourwalls.sdk.synchronous.pty import Pty
from fourwalls.sdk.synchronous.sandbox import Sandbox, Tunnel
from fourwalls.sdk.values import (
    CommandResult,
    EntryInfo,
    FilesystemEvent,
    FilesystemEventType,
    FileType,
    ProcessInfo,
    PtySize,
    SandboxMetrics,
    WriteEntry,
    WriteInfo,
)

__all__ = [
    "AsyncCommandHandle",
    "AsyncCommands",
    "AsyncFiles",
    "AsyncPty",
    "AsyncSandbox",
    "AsyncTunnel",
    "AsyncWatchHandle",
    "CommandHandle",
    "CommandResult",
    "Commands",
    "EntryInfo",
    "FileType",
    "Files",
    "FilesystemEvent",
    "FilesystemEventType",
    "ProcessInfo",
    "Pty",
    "PtySize",
    "Sandbox",
    "SandboxMetrics",
    "Tunnel",
    "WatchHandle",
    "WriteEntry",
    "WriteInfo",
]
