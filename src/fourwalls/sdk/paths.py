"""Paths inside a sandbox: checked, made absolute, and back to text."""

from __future__ import annotations

import os
from typing import Final

from fourwalls.model.errors import InvalidArgumentError
from fourwalls.sdk.checks import MAX_NAME, MAX_PATH, text_bytes

PathLike = str | bytes | os.PathLike[str]

MAX_PASSWD: Final = 1024 * 1024
"""Bytes of ``/etc/passwd`` that are looked at."""


def check_path(path: object, what: str = "path") -> bytes:
    """The path as bytes: absolute, relative or starting with ``~``."""
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    raw = text_bytes(path, what)
    if not raw:
        raise InvalidArgumentError(f"{what} is empty")
    if len(raw) > MAX_PATH:
        raise InvalidArgumentError(f"{what} has {len(raw)} bytes: at most {MAX_PATH}")
    for part in raw.split(b"/"):
        if len(part) > MAX_NAME:
            raise InvalidArgumentError(
                f"a name in {what} has {len(part)} bytes: at most {MAX_NAME}"
            )
    return raw


def needs_home(path: bytes) -> bytes | None:
    """Whose home the path starts from: a user, ``b""`` for the caller's own, None for nobody's."""
    if path.startswith(b"/"):
        return None
    if path.startswith(b"~"):
        return path[1:].split(b"/", 1)[0]
    return b""


def absolute(path: bytes, home: bytes) -> bytes:
    """The path, below ``home`` unless it is absolute, without empty and ``.`` parts.

    ``..`` stays: what it means depends on the links on the way, which only the sandbox knows.
    """
    if path.startswith(b"~"):
        path = home + b"/" + path.partition(b"/")[2]
    elif not path.startswith(b"/"):
        path = home + b"/" + path
    full = b"/" + b"/".join(part for part in path.split(b"/") if part not in (b"", b"."))
    if len(full) > MAX_PATH:
        raise InvalidArgumentError(f"the absolute path has {len(full)} bytes: at most {MAX_PATH}")
    return full


def home_in_passwd(passwd: bytes, user: bytes) -> bytes | None:
    """The home directory of ``user`` in the sandbox's ``/etc/passwd``, if it is a path at all."""
    for line in passwd.split(b"\n"):
        fields = line.split(b":")
        if len(fields) >= 6 and user in (fields[0], fields[2]):
            home = fields[5]
            return home if home.startswith(b"/") and b"\0" not in home else None
    return None


def to_text(raw: bytes) -> str:
    """A name or path for the caller; bytes that are not UTF-8 become surrogate escapes."""
    return raw.decode("utf-8", "surrogateescape")
