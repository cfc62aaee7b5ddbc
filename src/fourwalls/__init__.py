"""Run code nobody has vouched for, behind a boundary you choose.

::

    from fourwalls import Sandbox

    with Sandbox.create() as sandbox:
        print(sandbox.commands.run("echo hello").stdout)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fourwalls.model.errors import (
        BoundaryUnavailableError,
        CommandExitError,
        CommandStartError,
        CommandTimeoutError,
        FourwallsError,
        InvalidArgumentError,
        PathNotFoundError,
        SandboxGoneError,
        SandboxNotFoundError,
        SandboxStartError,
    )
    from fourwalls.sdk import AsyncSandbox, CommandResult, PtySize, Sandbox, WriteEntry

__version__ = "0.1.0"

__all__ = [
    "AsyncSandbox",
    "BoundaryUnavailableError",
    "CommandExitError",
    "CommandResult",
    "CommandStartError",
    "CommandTimeoutError",
    "FourwallsError",
    "InvalidArgumentError",
    "PathNotFoundError",
    "PtySize",
    "Sandbox",
    "SandboxGoneError",
    "SandboxNotFoundError",
    "SandboxStartError",
    "WriteEntry",
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
