"""Files of this host into a sandbox."""

from __future__ import annotations

import asyncio
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from fourwalls.guest.files import Files
from fourwalls.model.errors import InvalidArgumentError

_PIECE = 1 << 20


@dataclass
class Copied:
    """What was copied: files, bytes, and what was left out with the reason."""

    files: int = 0
    size: int = 0
    left_out: list[str] = field(default_factory=list)


async def copy_in(files: Files, source: Path, target: bytes, *, user: str | None) -> Copied:
    """Copy the file or directory ``source`` to ``target`` (absolute), owned by ``user``.

    The path the caller names may be a symlink. Symlinks inside a directory are left out, as they
    could lead out of what was named; so are devices and the like.
    """
    done = Copied()
    try:
        status = os.stat(source)
    except OSError as error:
        raise InvalidArgumentError(f"{source} cannot be read: {error.strerror}") from error
    if stat.S_ISDIR(status.st_mode):
        await files.mkdir(target, user=user)
        await _copy_directory(files, source, target, user, done)
    else:
        await _copy_file(files, source, target, user, done, follow=True)
    return done


async def _copy_directory(
    files: Files, source: Path, target: bytes, user: str | None, done: Copied
) -> None:
    with os.scandir(source) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        inside = target + b"/" + os.fsencode(entry.name)
        if entry.is_dir(follow_symlinks=False):
            await files.mkdir(inside, user=user)
            await _copy_directory(files, Path(entry.path), inside, user, done)
        elif entry.is_file(follow_symlinks=False):
            await _copy_file(files, Path(entry.path), inside, user, done, follow=False)
        else:
            kind = "a symlink" if entry.is_symlink() else "not a file"
            done.left_out.append(f"{entry.path}: {kind}")


async def _copy_file(
    files: Files, source: Path, target: bytes, user: str | None, done: Copied, *, follow: bool
) -> None:
    # Non-blocking: opening a FIFO must not wait for its other end.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        fd = os.open(source, flags)
    except OSError as error:
        raise InvalidArgumentError(f"{source} cannot be read: {error.strerror}") from error
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            raise InvalidArgumentError(f"{source} is neither a file nor a directory")
        stream = await files.write(target, user=user, mode=mode & 0o777)
        try:
            while piece := await asyncio.to_thread(os.read, fd, _PIECE):
                await stream.write(piece)
                done.size += len(piece)
            await stream.finish()
        finally:
            stream.close()
    finally:
        os.close(fd)
    done.files += 1
