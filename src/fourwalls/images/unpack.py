"""Writing entries, which may be hostile, into a directory: layer by layer, never outside it.

Parents are resolved by the kernel with the directory as root (openat2, RESOLVE_IN_ROOT): a later
entry may go through a symbolic link of an earlier one, as containerd has it, and ends inside. A
last part is never followed: what stands there is replaced, a directory by a directory excepted.
Nothing is written into an existing file, so that hard links never carry a change elsewhere.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

from fourwalls.images import policy
from fourwalls.images.entry import DEEPEST, LONGEST_NAME, Entry, Kind, Readable, show
from fourwalls.images.policy import Limits, Notes, Verdict
from fourwalls.linux.openat2 import open_in_root
from fourwalls.model.errors import ImportRefusedError

_WHITEOUT = ".wh."
_META = ".wh..wh."
_OPAQUE = ".wh..wh..opq"
_DIRECTORY = os.O_PATH | os.O_DIRECTORY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20

Parts = tuple[str, ...]


class Unpacker:
    """Applies layers, lowest first, to the empty directory ``root``, inside a private one."""

    def __init__(self, root: Path, limits: Limits, notes: Notes) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fchmod(self._root, 0o755)  # what the template's root has if nothing else is said
        self._prefix = os.readlink(f"/proc/self/fd/{self._root}")
        self._limits = limits
        self._notes = notes
        self._entries = 0
        self._bytes = 0
        self._hidden = 0
        self._times: dict[Parts, int] = {(): 0}
        # Real paths that the present layer wrote, and all their parents.
        self._fresh: set[Parts] = set()

    def __enter__(self) -> Unpacker:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def begin_layer(self) -> None:
        """From here on, whiteouts hide what has been written before."""
        self._fresh = set()

    def apply(self, entry: Entry, content: Readable, *, whiteouts: bool) -> None:
        """Write one entry. Raises :class:`ImportRefusedError`, or :class:`OSError` of the disk."""
        self._entries += 1
        if self._entries > self._limits.entries:
            raise ImportRefusedError(f"more than {self._limits.entries} entries")
        if whiteouts:
            if any(part.startswith(_WHITEOUT) for part in (*entry.path[:-1], *entry.linked)):
                raise ImportRefusedError(f"{entry} goes through a whiteout")
            if entry.path and entry.path[-1].startswith(_WHITEOUT):
                self._whiteout(entry)
                return
        if entry.kind in (Kind.CHAR_DEVICE, Kind.BLOCK_DEVICE):
            policy.judge_device(entry)
            self._notes.add("the usual device nodes of /dev were left out")
            return
        if not entry.path:
            self._attributes(self._root, entry)
            self._times[()] = entry.mtime
            return
        parent, real = self._directory(entry.path[:-1])
        try:
            self._place(entry, content, parent, (*real, entry.path[-1]))
        finally:
            os.close(parent)

    def finish(self) -> None:
        """Set the times of directories, which writing into them has changed."""
        for path, mtime in self._times.items():
            try:
                fd = open_in_root(self._root, "/".join(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
            except OSError:
                continue  # replaced or hidden by a later entry
            try:
                if self._real(fd) == path:  # else a link has taken the place of a parent
                    os.utime(fd, (mtime, mtime))
            finally:
                os.close(fd)

    def _place(self, entry: Entry, content: Readable, parent: int, real: Parts) -> None:
        name = real[-1]
        if entry.kind is Kind.HARDLINK:
            self._hardlink(entry, parent, name)
        elif entry.kind is Kind.DIRECTORY:
            self._make_directory(entry, parent, real)
        else:
            self._remove(parent, name)
            if entry.kind is Kind.SYMLINK:
                os.symlink(entry.target, name, dir_fd=parent)
            elif entry.kind is Kind.FIFO:
                os.mkfifo(name, 0o600, dir_fd=parent)
            else:
                self._write(entry, content, parent, name)
            if entry.kind is not Kind.FILE:
                uid, gid = policy.owner(entry, self._notes)
                os.chown(name, uid, gid, dir_fd=parent, follow_symlinks=False)
                if entry.kind is Kind.FIFO:
                    os.chmod(name, entry.mode, dir_fd=parent)
                os.utime(name, (entry.mtime,) * 2, dir_fd=parent, follow_symlinks=False)
                if entry.xattrs:
                    self._notes.add("extended attributes of links and fifos were left out")
        self._mark(real)

    def _write(self, entry: Entry, content: Readable, parent: int, name: str) -> None:
        self._bytes += entry.size
        if self._bytes > self._limits.file_bytes:
            raise ImportRefusedError(f"more than {self._limits.file_bytes} bytes of files")
        fd = os.open(name, _CREATE, 0o600, dir_fd=parent)
        try:
            left = entry.size
            while left:
                data = content.read(min(left, _CHUNK))
                left -= len(data)
                while data:
                    data = data[os.write(fd, data) :]
            self._attributes(fd, entry)
            os.utime(fd, (entry.mtime, entry.mtime))
        finally:
            os.close(fd)

    def _make_directory(self, entry: Entry, parent: int, real: Parts) -> None:
        try:
            os.mkdir(real[-1], 0o700, dir_fd=parent)
        except FileExistsError:
            status = os.stat(real[-1], dir_fd=parent, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                self._remove(parent, real[-1])
                os.mkdir(real[-1], 0o700, dir_fd=parent)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(real[-1], flags, dir_fd=parent)
        try:
            self._attributes(fd, entry)
        finally:
            os.close(fd)
        self._times[real] = entry.mtime

    def _hardlink(self, entry: Entry, parent: int, name: str) -> None:
        missing = ImportRefusedError(
            f"{entry} is a hard link to {show(entry.linked)}, which is not there (any more)"
        )
        try:
            source = open_in_root(self._root, "/".join(entry.linked[:-1]) or ".", _DIRECTORY)
        except OSError as error:
            raise missing from error
        try:
            target = entry.linked[-1] if entry.linked else "."
            try:
                there = os.stat(target, dir_fd=source, follow_symlinks=False)
            except FileNotFoundError as error:
                raise missing from error
            if stat.S_ISDIR(there.st_mode):
                raise ImportRefusedError(f"{entry} is a hard link to a directory")
            here = self._status(parent, name)
            if here and (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
                return
            self._remove(parent, name)
            try:
                os.link(target, name, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError as error:  # it was inside what has just been replaced
                raise missing from error
        finally:
            os.close(source)

    def _attributes(self, fd: int, entry: Entry) -> None:
        """Owner first: changing it clears set-user-id bits and capabilities."""
        os.fchown(fd, *policy.owner(entry, self._notes))
        os.fchmod(fd, entry.mode)
        wanted = {}
        for name, value in entry.xattrs.items():
            if policy.judge_xattr(entry, name, value) is Verdict.KEEP:
                wanted[name] = value
            else:
                self._notes.add(f"extended attributes {name!a} were left out")
        for name in os.listxattr(fd):
            if name not in wanted and name.startswith(("user.", "security.capability")):
                os.removexattr(fd, name)
        for name, value in wanted.items():
            try:
                os.setxattr(fd, name, value)
            except OSError as error:
                raise ImportRefusedError(
                    f"{entry}: the extended attribute {name!a} cannot be set: {error.strerror}"
                ) from error

    def _directory(self, path: Parts) -> tuple[int, Parts]:
        """An fd of the directory ``path`` with its real path; what is missing is made."""
        try:
            fd = open_in_root(self._root, "/".join(path) or ".", _DIRECTORY)
        except FileNotFoundError:
            fd = self._make_parent(path)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
                raise ImportRefusedError(f"{show(path)} is not a directory") from error
            raise
        return fd, self._real(fd)

    def _make_parent(self, path: Parts) -> int:
        parent, real = self._directory(path[:-1])
        try:
            os.mkdir(path[-1], 0o755, dir_fd=parent)
            os.chmod(path[-1], 0o755, dir_fd=parent)
            fd = os.open(path[-1], _DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        except FileExistsError as error:
            raise ImportRefusedError(
                f"{show(path)} is a symbolic link to nowhere; nothing can be put below it"
            ) from error
        finally:
            os.close(parent)
        self._times[(*real, path[-1])] = 0
        self._mark((*real, path[-1]))
        return fd

    def _real(self, fd: int) -> Parts:
        try:
            path = os.readlink(f"/proc/self/fd/{fd}")
        except OSError as error:
            raise ImportRefusedError("a path is too long once its links are followed") from error
        if path != self._prefix and not path.startswith(f"{self._prefix}/"):
            raise ImportRefusedError("a path leaves the root")  # the kernel does not let it
        parts = tuple(part for part in path.removeprefix(self._prefix).split("/") if part)
        if len(parts) >= DEEPEST:
            raise ImportRefusedError(f"{show(parts[:8])}… is deeper than {DEEPEST} directories")
        return parts

    def _whiteout(self, entry: Entry) -> None:
        *above, name = entry.path
        hidden = name.removeprefix(_WHITEOUT)
        if name != _OPAQUE and name.startswith(_META):
            self._notes.add("metadata files of aufs were left out")
            return
        if hidden in ("", ".", "..") or len(hidden) > LONGEST_NAME:
            raise ImportRefusedError(f"{entry} is a whiteout without a name")
        try:
            parent = open_in_root(self._root, "/".join(above) or ".", _DIRECTORY)
        except OSError:
            return  # nothing is there to be hidden
        try:
            real = self._real(parent)
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
            try:
                names = os.listdir(readable) if name == _OPAQUE else [hidden]
            finally:
                os.close(readable)
            for each in names:
                self._hide(parent, (*real, each))
        finally:
            os.close(parent)

    def _hide(self, parent: int, real: Parts) -> None:
        """Remove what lower layers put at ``real``, but not what this layer has put there."""
        self._hidden += 1
        if self._hidden > self._limits.entries:
            raise ImportRefusedError(f"whiteouts hide more than {self._limits.entries} entries")
        if real not in self._fresh:
            self._remove(parent, real[-1])
            return
        status = self._status(parent, real[-1])
        if status and stat.S_ISDIR(status.st_mode):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(real[-1], flags, dir_fd=parent)
            try:
                for name in os.listdir(fd):
                    self._hide(fd, (*real, name))
            finally:
                os.close(fd)

    def _mark(self, real: Parts) -> None:
        while real and real not in self._fresh:
            self._fresh.add(real)
            real = real[:-1]

    @staticmethod
    def _status(parent: int, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _remove(self, parent: int, name: str) -> None:
        status = self._status(parent, name)
        if status is None:
            return
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)
