"""How a script is run: by its first line, by the end of its name, or by the language named."""

from __future__ import annotations

from dataclasses import dataclass

from fourwalls.model.errors import InvalidArgumentError


@dataclass(frozen=True)
class Language:
    """``inline`` is the interpreter's option for code on the command line."""

    interpreter: str
    inline: str
    suffix: str


LANGUAGES = {
    "python": Language("python3", "-c", ".py"),
    "node": Language("node", "-e", ".js"),
    "bash": Language("bash", "-c", ".bash"),
    "sh": Language("sh", "-c", ".sh"),
}
_BY_SUFFIX = {
    ".py": "python",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".bash": "bash",
    ".sh": "sh",
}
# What the kernel reads of a first line.
_LONGEST_SHEBANG = 255


def interpreter_of(name: str, beginning: bytes, language: str | None) -> list[bytes]:
    """The words that go before the script's path.

    ``language`` decides if it is given, then a ``#!`` line, then the suffix of ``name``.
    """
    if language is not None:
        return [language_of(language).interpreter.encode()]
    shebang = _shebang(beginning)
    if shebang:
        return shebang
    for suffix, known in _BY_SUFFIX.items():
        if name.lower().endswith(suffix):
            return [LANGUAGES[known].interpreter.encode()]
    raise InvalidArgumentError(
        f"no interpreter is known for {name!r}: it has no '#!' line and does not end in "
        + ", ".join(_BY_SUFFIX),
        remedy=f"name the language: --language {'|'.join(LANGUAGES)}",
    )


def inline_command(code: str, language: str) -> list[bytes]:
    """The command that runs ``code`` given as text."""
    chosen = language_of(language)
    return [
        chosen.interpreter.encode(),
        chosen.inline.encode(),
        code.encode("utf-8", "surrogateescape"),
    ]


def language_of(name: str) -> Language:
    """The language called ``name``; :class:`InvalidArgumentError` names the known ones."""
    try:
        return LANGUAGES[name]
    except KeyError:
        known = ", ".join(LANGUAGES)
        raise InvalidArgumentError(f"unknown language {name!r}: one of {known}") from None


def _shebang(beginning: bytes) -> list[bytes]:
    if not beginning.startswith(b"#!"):
        return []
    line = beginning[2:_LONGEST_SHEBANG].split(b"\n", 1)[0].strip()
    # The kernel hands everything after the first word on as one argument.
    return [word.strip() for word in line.split(None, 1)]
