"""Where the content of an upload comes from: one iterator over any of the kinds allowed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import IO, Final

from fourwalls.model.errors import InvalidArgumentError
from fourwalls.sdk.checks import payload

Source = (
    str
    | bytes
    | bytearray
    | memoryview
    | IO[bytes]
    | IO[str]
    | Iterable[bytes | str]
    | (AsyncIterable[bytes | str])
)

PIECE: Final = 1024 * 1024
"""Bytes or characters read from a file object at a time."""

_END: Final = object()


def check_source(data: object) -> None:
    """Refuse what is no content, before a file is opened in the sandbox."""
    if not (
        isinstance(data, (str, bytes, bytearray, memoryview, Iterable, AsyncIterable))
        or callable(getattr(data, "read", None))
    ):
        raise InvalidArgumentError(
            "data must be str, bytes, a file object or an iterator of them, "
            f"not {type(data).__name__}"
        )


async def pieces(data: Source) -> AsyncIterator[bytes | memoryview]:
    """The content piece by piece. File objects and iterators may block: a thread reads them."""
    if isinstance(data, str):
        yield payload(data)
    elif isinstance(data, (bytes, bytearray, memoryview)):
        yield memoryview(data).cast("B")
    elif isinstance(data, AsyncIterable):
        async for piece in data:
            yield payload(piece, "a piece of data")
    elif hasattr(data, "read"):
        while piece := await asyncio.to_thread(data.read, PIECE):
            yield payload(piece, "a piece of data")
    else:
        iterator = iter(data)
        while (item := await asyncio.to_thread(next, iterator, _END)) is not _END:
            yield payload(item, "a piece of data")
