"""What a caller asks for, and what a sandbox says of itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from fourwalls.model.boundary import Boundary
from fourwalls.model.cause import Cause
from fourwalls.model.errors import InvalidArgumentError
from fourwalls.model.lifecycle import State
from fourwalls.model.sizes import Resources

MAX_TIMEOUT_S = 365 * 24 * 3600.0

# What execve(2) takes as one string. The sum fits one frame and leaves room for what commands add.
_MAX_VARIABLE = 128 * 1024 - 1
_MAX_ENVS = 1024 * 1024


@dataclass(frozen=True)
class CreateRequest:
    """A checked request for a sandbox.

    ``boundary`` None means ``auto``: the strongest that runs at native speed here, never below
    ``min_boundary``. ``timeout_s`` is the lease. ``detach`` lets the sandbox live on when its
    creator ends.
    """

    template: str
    boundary: Boundary | None
    min_boundary: Boundary | None
    resources: Resources
    timeout_s: float
    envs: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    detach: bool = False


@dataclass(frozen=True)
class SandboxInfo:
    """What is known of a sandbox. Times are seconds since the epoch."""

    sandbox_id: str
    boundary: Boundary
    boundary_reason: str
    template: str
    template_digest: str
    resources: Resources
    metadata: Mapping[str, str]
    started_at: float
    end_at: float
    state: State = State.RUNNING


@dataclass(frozen=True)
class ExitRecord:
    """How a sandbox ended, as the shim wrote it down. Times are seconds since the epoch."""

    sandbox_id: str
    cause: Cause
    message: str = ""
    stage: str = ""
    exit_code: int = 0
    signal: int = 0
    oom_kills: int = 0
    pids_refused: int = 0
    stderr: str = ""
    started_at: float = 0.0
    ended_at: float = 0.0


def check_timeout(seconds: object) -> float:
    """A lease in seconds: a finite number above 0, at most a year."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise InvalidArgumentError(f"timeout must be a number of seconds, not {seconds!r}")
    if not math.isfinite(seconds) or not 0 < seconds <= MAX_TIMEOUT_S:
        raise InvalidArgumentError(
            f"timeout must be more than 0 and at most {MAX_TIMEOUT_S:.0f} seconds, not {seconds!r}"
        )
    return float(seconds)


def check_envs(envs: object) -> dict[str, str]:
    """Environment variables: names without ``=`` and NUL, values without NUL, all of it UTF-8."""
    if not isinstance(envs, Mapping):
        raise InvalidArgumentError(f"envs must map names to strings, not {type(envs).__name__}")
    checked: dict[str, str] = {}
    total = 0
    for name, value in envs.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise InvalidArgumentError(
                f"environment name {name!r} is not allowed: a non-empty string without '=' or NUL"
            )
        if not isinstance(value, str) or "\0" in value:
            raise InvalidArgumentError(
                f"value of environment variable {name} has a NUL byte"
                if isinstance(value, str)
                else f"value of environment variable {name} is not a string"
            )
        size = len(_utf8(f"{name}={value}", f"environment variable {name[:80]!r}"))
        if size > _MAX_VARIABLE:
            raise InvalidArgumentError(
                f"environment variable {name[:80]} has {size} bytes: at most {_MAX_VARIABLE}",
                remedy="write it to a file in the sandbox",
            )
        total += size
        checked[name] = value
    if total > _MAX_ENVS:
        raise InvalidArgumentError(
            f"the environment has {total} bytes: at most {_MAX_ENVS} together",
            remedy="write it to a file in the sandbox",
        )
    return checked


def _utf8(text: str, what: str) -> bytes:
    """The text's bytes; it is written down as JSON, which has no other text."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{what} is not UTF-8") from None


def check_metadata(metadata: object) -> dict[str, str]:
    """Metadata: strings to strings of UTF-8, at most 64 KiB together."""
    if not isinstance(metadata, Mapping):
        raise InvalidArgumentError("metadata must map strings to strings")
    total = 0
    for name, value in metadata.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidArgumentError("metadata must map strings to strings")
        total += len(_utf8(name + value, f"metadata {name[:80]!r}"))
    if total > 65_536:
        raise InvalidArgumentError("metadata is limited to 65536 bytes together")
    return dict(metadata)
