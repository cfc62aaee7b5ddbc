"""Run code nobody has vouched for, behind a boundary you choose.

::

    from fourwalls import Sandbox

    with Sandbox.create() as sandbox:
        print(sandbox.commands.run("echo hello").stdout)
"""

from __future__ import annotations

# Type checkers know the name; importing typing for it would cost more than the rest of the package.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from fourwalls.model.errors import (
        AgentProtocolError,
        BoundaryUnavailableError,
        CapabilityError,
        CommandError,
        CommandExitError,
        CommandStartError,
        CommandTimeoutError,
        DiskFullError,
        FileError,
        FourwallsError,
        ImportRefusedError,
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
        SandboxGoneError,
        SandboxNotFoundError,
        SandboxStartError,
        TemplateCorruptError,
        TemplateError,
        TemplateNotFoundError,
    )
    from fourwalls.sdk import (
        AsyncCommandHandle,
        AsyncSandbox,
        CommandHandle,
        CommandResult,
        EntryInfo,
        FilesystemEvent,
        FilesystemEventType,
        FileType,
        ProcessInfo,
        PtySize,
        Sandbox,
        SandboxMetrics,
        WriteEntry,
        WriteInfo,
    )

__version__ = "0.1.0"

__all__ = [
    "AgentProtocolError",
    "AsyncCommandHandle",
    "AsyncSandbox",
    "BoundaryUnavailableError",
    "CapabilityError",
    "CommandError",
    "CommandExitError",
    "CommandHandle",
    "CommandResult",
    "CommandStartError",
    "CommandTimeoutError",
    "DiskFullError",
    "EntryInfo",
    "FileError",
    "FileType",
    "FilesystemEvent",
    "FilesystemEventType",
    "FourwallsError",
    "ImportRefusedError",
    "InvalidArgumentError",
    "LimitError",
    "NotFoundError",
    "PathExistsError",
    "PathIsADirectoryError",
    "PathNotADirectoryError",
    "PathNotFoundError",
    "PermissionDeniedError",
    "ProcessInfo",
    "ProcessNotFoundError",
    "PtySize",
    "Sandbox",
    "SandboxError",
    "SandboxGoneError",
    "SandboxMetrics",
    "SandboxNotFoundError",
    "SandboxStartError",
    "TemplateCorruptError",
    "TemplateError",
    "TemplateNotFoundError",
    "WriteEntry",
    "WriteInfo",
    "__version__",
]


def __getattr__(name: str) -> object:
    # Loaded when used, so that importing the package costs next to nothing.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = "fourwalls.model.errors" if name.endswith("Error") else "fourwalls.sdk"
    value: object = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
