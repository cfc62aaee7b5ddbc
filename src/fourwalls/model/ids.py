"""Sandbox ids: 20 characters of ``[a-z0-9]``, starting with a letter."""

from __future__ import annotations

import re
import secrets

from fourwalls.model.errors import InvalidArgumentError

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_LETTERS = 26
ID_LENGTH = 20
_PATTERN = re.compile(rf"[a-z0-9]{{{ID_LENGTH}}}")


def new_sandbox_id() -> str:
    """A fresh id; about 103 bits of chance, so two never meet."""
    # One draw for all characters: twenty draws cost more than the rest of a request.
    number, first = divmod(secrets.randbits(192), _LETTERS)
    characters = [_ALPHABET[first]]
    for _ in range(ID_LENGTH - 1):
        number, digit = divmod(number, len(_ALPHABET))
        characters.append(_ALPHABET[digit])
    return "".join(characters)


def parse_sandbox_id(text: str) -> str:
    """``text`` if it is a sandbox id, so that it may become part of a path or a name."""
    if not isinstance(text, str) or not _PATTERN.fullmatch(text):
        shown = repr(text)[:60]
        raise InvalidArgumentError(
            f"not a sandbox id: {shown}; an id is 20 characters of a-z and 0-9"
        )
    return text
