"""Our two static binaries, and where a sandbox can reach them."""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path

from fourwalls.linux.places import Places

AGENT = "fourwalls-agent"
SHIM = "fourwalls-shim"

_PACKAGED = Path(__file__).resolve().parent.parent / "_bin"


def packaged(name: str) -> Path | None:
    """The binary that came with this package, or None when it was not built."""
    path = _PACKAGED / name
    return path if path.is_file() else None


@functools.cache
def staged(name: str, places: Places) -> Path:
    """A copy of the binary that other users may execute.

    The package may lie below a directory only its owner can enter, and the run directory is often
    mounted noexec; gVisor's file server and the agent's own mount need neither. The copy's name
    carries the source's time and size, so an upgrade never changes a file that is in use.
    """
    source = packaged(name)
    if source is None:
        raise FileNotFoundError(f"{name} is not built; run scripts/build-agent")
    status = source.stat()
    target = places.state / "bin" / f"{name}-{status.st_mtime_ns}-{status.st_size}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        os.chmod(target.parent, 0o755)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copyfile(source, unfinished)
        os.chmod(unfinished, 0o755)
        os.rename(unfinished, target)
    return target
