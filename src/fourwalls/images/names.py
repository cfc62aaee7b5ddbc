"""Template names: ``name`` or ``name:tag``, and how a reference is kept in a file name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from fourwalls.model.errors import InvalidArgumentError

DEFAULT_TAG = "latest"

_PART = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_HEX = re.compile(r"(?:blake2b:)?([0-9a-f]{64})")
# Stands for ':' in file names. It is in no name, so that the two forms map one to one.
_SEPARATOR = "@"


@dataclass(frozen=True, order=True)
class TemplateName:
    """A checked name. ``str()`` leaves the default tag out."""

    name: str
    tag: str = DEFAULT_TAG

    @classmethod
    def parse(cls, text: str) -> Self:
        """``name`` or ``name:tag``; raises :class:`InvalidArgumentError`."""
        name, colon, tag = text.partition(":")
        if not colon:
            tag = DEFAULT_TAG
        if not (_PART.fullmatch(name) and _PART.fullmatch(tag)):
            raise InvalidArgumentError(
                f"template name {text!r} is not allowed: a name and an optional ':tag', each"
                " 1 to 63 of a-z 0-9 . _ - and starting with a letter or digit"
            )
        return cls(name, tag)

    @classmethod
    def from_file_name(cls, text: str) -> Self:
        """Inverse of :attr:`file_name`; raises :class:`InvalidArgumentError`."""
        name, separator, tag = text.partition(_SEPARATOR)
        if not separator:
            raise InvalidArgumentError(f"{text!r} is not the file name of a template name")
        return cls.parse(f"{name}:{tag}")

    @property
    def file_name(self) -> str:
        return f"{self.name}{_SEPARATOR}{self.tag}"

    def __str__(self) -> str:
        return self.name if self.tag == DEFAULT_TAG else f"{self.name}:{self.tag}"


def digest_hex(text: str) -> str | None:
    """The 64 hex digits if ``text`` is a digest (``blake2b:`` is optional), else None."""
    match = _HEX.fullmatch(text)
    return match[1] if match else None
