"""Sandbox ids: 20 characters of ``[a-z0-9]``, starting with a letter."""

from __future__ import annotations

import re
import secrets
import string

from fourwalls.model.errors import InvalidArgumentError

_LETTERS = string.ascii_lowercase
_ALPHABET = string.ascii_lowercase + string.digits
_PATTERN = re.compile(r"[a-z0-9]{20}")


def new_sandbox_id() -> str:
    """A fresh id; about 103 bits of chance, so two never meet."""
    return secrets.choice(_LETTERS) + "".join(secrets.choice(_ALPHABET) for _ in range(19))


def parse_sandbox_id(text: str) -> str:
    """``text`` if it is a sandbox id, so that it may become part of a path or a name."""
    if not isinstance(text, str) or not _PATTERN.fullmatch(text):
        shown = repr(text)[:60]
        raise InvalidArgumentError(
            f"not a sandbox id: {shown}; an id is 20 characters of a-z and 0-9"
        )
    return text
