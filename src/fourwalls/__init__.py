"""Run code nobody has vouched for, behind a boundary you choose.

    from fourwalls import Sandbox

    with Sandbox.create() as sandbox:
        print(sandbox.commands.run("echo hello").stdout)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fourwalls.sdk import AsyncSandbox, Sandbox

__version__ = "0.1.0"

__all__ = ["AsyncSandbox", "Sandbox", "__version__"]


def __getattr__(name: str) -> object:
    # Loaded when used, so that importing the package costs next to nothing.
    if name in ("AsyncSandbox", "Sandbox"):
        import fourwalls.sdk

        value: object = getattr(fourwalls.sdk, name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
