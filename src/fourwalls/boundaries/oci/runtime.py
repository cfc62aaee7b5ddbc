"""Finding an OCI runtime on the host and what it is: path and version."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess

_TIMEOUT_S = 10


@functools.cache
def find_runtime(name: str) -> str | None:
    """Absolute path of the runtime, or None."""
    return shutil.which(name, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")


@functools.cache
def runtime_version(path: str) -> str:
    """The first line that ``--version`` prints, or what went wrong."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unusable: {error}"
    lines = done.stdout.splitlines() or done.stderr.splitlines() or ["unusable: no output"]
    return lines[0]


def crun_version(line: str) -> tuple[int, ...] | None:
    """``crun version 1.8.1`` → ``(1, 8, 1)``."""
    match = re.search(r"crun version (\d+(?:\.\d+)*)", line)
    return tuple(int(part) for part in match[1].split(".")) if match else None


def runsc_release(line: str) -> int | None:
    """``runsc version 0.0~20240729.0`` or ``release-20240729.0`` → ``20240729``."""
    match = re.search(r"\b(?:release-|0\.0~)?(20\d{6})\b", line)
    return int(match[1]) if match else None
