"""Checks of what a caller passes in: before anything is sent, with the limit and the remedy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from fourwalls.model.errors import InvalidArgumentError
from fourwalls.model.sandbox import MAX_TIMEOUT_S

MAX_STRING: Final = 128 * 1024 - 1
"""Bytes of one argument or one ``NAME=value``: what execve(2) takes, without its NUL."""

MAX_STRINGS: Final = 2 * 1024 * 1024
"""Bytes of all arguments and the environment together."""

MAX_PATH: Final = 4095
MAX_NAME: Final = 255
MAX_WORD: Final = 256

_FILE_FIRST: Final = "write it to a file first and pass the file's path"


def encode(text: str, what: str) -> bytes:
    """``text`` as the bytes the sandbox sees; escapes of foreign bytes become those bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"{what} has a character that is no text: {text!r:.80}"
        ) from None


def text_bytes(value: object, what: str) -> bytes:
    """A string without NUL, as bytes."""
    if isinstance(value, bytes):
        raw = value
    elif isinstance(value, str):
        raw = encode(value, what)
    else:
        raise InvalidArgumentError(f"{what} must be a string, not {type(value).__name__}")
    if b"\0" in raw:
        raise InvalidArgumentError(f"{what} must not have a NUL byte: {value!r:.80}")
    return raw


def argv(command: object) -> list[bytes]:
    """The arguments of a command that is run directly."""
    if not isinstance(command, Sequence) or isinstance(command, (str, bytes)):
        raise InvalidArgumentError(
            f"a command is a string or a list of strings, not {type(command).__name__}"
        )
    checked = [text_bytes(item, "an argument of the command") for item in command]
    if not checked or not checked[0]:
        raise InvalidArgumentError("the command is empty: name at least a program")
    return checked


def shell_command(command: str) -> bytes:
    """A command line for the shell."""
    raw = text_bytes(command, "the command")
    if not raw.strip():
        raise InvalidArgumentError("the command is empty")
    return raw


def environment(envs: object) -> dict[str, bytes]:
    """Environment variables of one command."""
    if envs is None:
        return {}
    if not isinstance(envs, Mapping):
        raise InvalidArgumentError(f"envs must map names to strings, not {type(envs).__name__}")
    checked: dict[str, bytes] = {}
    for name, value in envs.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise InvalidArgumentError(
                f"environment name {name!r:.80} is not allowed: "
                "a non-empty string without '=' or NUL"
            )
        try:
            name.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError(f"environment name {name!r:.80} is not UTF-8") from None
        checked[name] = text_bytes(value, f"the value of environment variable {name[:80]}")
    return checked


def command_size(arguments: Sequence[bytes], envs: Mapping[str, bytes]) -> None:
    """Refuse what execve(2) would refuse, but with words."""
    total = 0
    for argument in arguments:
        total += len(argument) + 1
        if len(argument) > MAX_STRING:
            raise InvalidArgumentError(
                f"an argument of the command has {len(argument)} bytes: at most {MAX_STRING}",
                remedy=_FILE_FIRST,
            )
    for name, value in envs.items():
        size = len(name.encode()) + 1 + len(value)
        total += size + 1
        if size > MAX_STRING:
            raise InvalidArgumentError(
                f"environment variable {name[:80]} has {size} bytes: at most {MAX_STRING}",
                remedy=_FILE_FIRST,
            )
    if total > MAX_STRINGS:
        raise InvalidArgumentError(
            f"the command and its environment have {total} bytes: at most {MAX_STRINGS} together",
            remedy=_FILE_FIRST,
        )


def timeout(seconds: object, what: str = "timeout") -> float:
    """Seconds, where None and 0 mean no limit (returned as 0)."""
    if seconds is None:
        return 0.0
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise InvalidArgumentError(f"{what} must be a number of seconds, not {seconds!r:.80}")
    if not math.isfinite(seconds) or not 0 <= seconds <= MAX_TIMEOUT_S:
        raise InvalidArgumentError(
            f"{what} must be between 0 (no limit) and {MAX_TIMEOUT_S:.0f} seconds, not {seconds!r}"
        )
    # Below a millisecond the wire has no word but 0, which would mean no limit.
    return max(float(seconds), 0.001) if seconds else 0.0


def request_timeout(seconds: object, default: float | None = 60.0) -> float | None:
    """Seconds one request may take: None is the default, 0 no limit (returned as None)."""
    if seconds is None:
        return default
    return timeout(seconds, "request_timeout") or None


def user(name: object) -> str | None:
    """A user of the sandbox; None is the template's."""
    return None if name is None else word(name, "user")


def word(value: object, what: str) -> str:
    """A short name without control characters."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{what} must be a string, not {type(value).__name__}")
    if not value or len(value) > MAX_WORD or not value.isprintable():
        raise InvalidArgumentError(
            f"{what} must have 1 to {MAX_WORD} printable characters, not {value!r:.80}"
        )
    return value


def whole(value: object, what: str, low: int, high: int) -> int:
    """A whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgumentError(f"{what} must be a whole number, not {value!r:.80}")
    if not low <= value <= high:
        raise InvalidArgumentError(f"{what} must be between {low} and {high}, not {value}")
    return value


def pid(value: object) -> int:
    """A process id."""
    return whole(value, "pid", 1, 2**31 - 1)


def port(value: object) -> int:
    """A TCP port."""
    return whole(value, "port", 1, 65535)


def payload(data: object, what: str = "data") -> bytes:
    """Text or bytes that may hold anything."""
    if isinstance(data, str):
        return encode(data, what)
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise InvalidArgumentError(f"{what} must be str or bytes, not {type(data).__name__}")
