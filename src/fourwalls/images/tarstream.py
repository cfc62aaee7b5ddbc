"""Reading a tar archive as a stream: ustar, PAX and GNU long names; every doubt is an error.

The standard library's reader takes a damaged header for the end of the archive and reads PAX
headers of any size into memory. Only its header parser is used here.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from fourwalls.images.entry import Entry, Kind, Readable, safe_path
from fourwalls.images.policy import Notes
from fourwalls.model.errors import ImportRefusedError

_BLOCK = 512
_LARGEST_HEADER = 1 << 20
_LONGEST_LINK = 4095
_XATTR = "SCHILY.xattr."
_KINDS = {
    tarfile.REGTYPE: Kind.FILE,
    tarfile.AREGTYPE: Kind.FILE,
    tarfile.CONTTYPE: Kind.FILE,
    tarfile.DIRTYPE: Kind.DIRECTORY,
    tarfile.SYMTYPE: Kind.SYMLINK,
    tarfile.LNKTYPE: Kind.HARDLINK,
    tarfile.FIFOTYPE: Kind.FIFO,
    tarfile.CHRTYPE: Kind.CHAR_DEVICE,
    tarfile.BLKTYPE: Kind.BLOCK_DEVICE,
}
_SECONDS = re.compile(r"(-?\d{1,15})(?:\.\d*)?")
_LATEST = 1 << 33


class _Content:
    """The bytes of one member. What is not read is skipped before the next header."""

    def __init__(self, stream: Readable, size: int) -> None:
        self._stream = stream
        self._left = size
        self._padding = -size % _BLOCK

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(min(size, self._left))
        self._left -= len(data)
        if not data and size and self._left:
            raise _truncated()
        return data

    def skip(self) -> None:
        while self._left:
            self.read(1 << 20)
        _exactly(self._stream, self._padding)


@dataclass
class _Extra:
    """What extension headers said about the member that follows them."""

    records: dict[str, str] = field(default_factory=dict)
    xattrs: dict[str, bytes] = field(default_factory=dict)
    name: str | None = None
    link: str | None = None


def read_tar(
    stream: Readable, notes: Notes, *, end_required: bool
) -> Iterator[tuple[Entry, Readable]]:
    """Each member with its content, to be read before the next is asked for.

    ``end_required``: an archive without the end mark is refused as truncated; give False only if
    a digest vouches for its completeness. Raises :class:`ImportRefusedError`.
    """
    extra = _Extra()
    while True:
        block = _up_to(stream, _BLOCK)
        if not block and not end_required:
            break
        if len(block) < _BLOCK:
            raise _truncated()
        if not any(block):
            break
        header = _parse(block)
        if header.type in (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE):
            _merge(extra, _extension(stream, header), notes)
        elif header.type == tarfile.XGLTYPE:
            _ignore_global(_extension(stream, header))
        elif header.type == tarfile.GNUTYPE_LONGNAME:
            extra.name = _text(_extension(stream, header))
        elif header.type == tarfile.GNUTYPE_LONGLINK:
            extra.link = _text(_extension(stream, header))
        else:
            entry = _entry(header, extra)
            content = _Content(stream, entry.size)
            yield entry, content
            content.skip()
            extra = _Extra()
    while rest := stream.read(1 << 20):  # to the end, so that digests cover all
        if end_required and rest.strip(b"\0"):
            raise ImportRefusedError(
                "not a tar archive, or several in one file: there is data after its end mark"
            )


def _parse(block: bytes) -> tarfile.TarInfo:
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError) as error:
        raise ImportRefusedError(f"not a tar archive, or a damaged one: {error}") from error
    if header.size < 0:
        raise ImportRefusedError("damaged tar archive: a member has a negative size")
    return header


def _entry(header: tarfile.TarInfo, extra: _Extra) -> Entry:
    name = extra.records.get("path", extra.name if extra.name is not None else header.name)
    link = extra.records.get("linkpath", extra.link if extra.link is not None else header.linkname)
    path = safe_path(name)
    kind = _KINDS.get(header.type)
    if kind is None or any(key.startswith("GNU.sparse.") for key in extra.records):
        what = "is sparse" if header.type in (tarfile.GNUTYPE_SPARSE, tarfile.REGTYPE) else "has"
        raise ImportRefusedError(
            f"member {name[:200]!a} {what} (type {header.type!r}), which is not supported",
            remedy="make the archive without --sparse, in the pax or ustar format",
        )
    if not path and kind is not Kind.DIRECTORY:
        raise ImportRefusedError(f"member {name[:200]!a} would replace the root directory")
    if (kind is Kind.SYMLINK and not 0 < len(_encoded(link)) <= _LONGEST_LINK) or "\0" in link:
        raise ImportRefusedError(f"the symbolic link {name[:200]!a} has no valid target")
    return Entry(
        path=path,
        kind=kind,
        mode=header.mode & 0o7777,
        uid=_number(extra, "uid", header.uid),
        gid=_number(extra, "gid", header.gid),
        mtime=_seconds(extra, header.mtime),
        size=_number(extra, "size", header.size) if kind is Kind.FILE else 0,
        target=link if kind is Kind.SYMLINK else "",
        linked=safe_path(link) if kind is Kind.HARDLINK else (),
        device=(header.devmajor, header.devminor),
        xattrs=extra.xattrs,
    )


def _extension(stream: Readable, header: tarfile.TarInfo) -> bytes:
    if header.size > _LARGEST_HEADER:
        raise ImportRefusedError(
            f"a tar extension header of {header.size} bytes; at most {_LARGEST_HEADER} are allowed"
        )
    data = _exactly(stream, header.size)
    _exactly(stream, -header.size % _BLOCK)
    return data


def parse_pax(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The records ``<length> <key>=<value>\\n`` of a PAX header, strictly."""
    position = 0
    while position < len(data):
        space = data.find(b" ", position, position + 10)
        digits = data[position:space] if space > 0 else b""
        if not digits.isdigit():
            raise ImportRefusedError("damaged tar archive: a PAX record has no length")
        end = position + int(digits)
        record = data[space + 1 : end]
        key, equals, value = record[:-1].partition(b"=")
        if end > len(data) or not (key and equals and record.endswith(b"\n")):
            raise ImportRefusedError("damaged tar archive: a PAX record is malformed")
        yield key.decode("utf-8", "surrogateescape"), value
        position = end


def _merge(extra: _Extra, data: bytes, notes: Notes) -> None:
    for key, value in parse_pax(data):
        if key.startswith(_XATTR):
            extra.xattrs[key.removeprefix(_XATTR)] = value
        elif key.startswith(("SCHILY.acl.", "LIBARCHIVE.xattr.", "RHT.")):
            notes.add(f"tar attributes {key.rsplit('.', 1)[0]!a} were left out")
        else:
            extra.records[key] = value.decode("utf-8", "surrogateescape")


def _ignore_global(data: bytes) -> None:
    for key, _ in parse_pax(data):
        if key in ("path", "linkpath", "size") or key.startswith((_XATTR, "GNU.sparse.")):
            raise ImportRefusedError(f"a global tar header sets {key!a} for all members")


def _number(extra: _Extra, key: str, value: int) -> int:
    text = extra.records.get(key)
    if text is not None:
        if not re.fullmatch(r"[0-9]{1,18}", text):
            raise ImportRefusedError(f"damaged tar archive: {key} is {text[:40]!a}")
        value = int(text)
    if value < 0:
        raise ImportRefusedError(f"damaged tar archive: {key} is negative")
    return value


def _seconds(extra: _Extra, value: float) -> int:
    text = extra.records.get("mtime")
    if text is not None:
        match = _SECONDS.fullmatch(text)
        if match is None:
            raise ImportRefusedError(f"damaged tar archive: mtime is {text[:40]!a}")
        value = int(match[1])
    return min(max(int(value), 0), _LATEST)


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _up_to(stream: Readable, size: int) -> bytes:
    data = stream.read(size)
    while len(data) < size and (more := stream.read(size - len(data))):
        data += more
    return data


def _exactly(stream: Readable, size: int) -> bytes:
    data = _up_to(stream, size)
    if len(data) < size:
        raise _truncated()
    return data


def _truncated() -> ImportRefusedError:
    return ImportRefusedError(
        "the tar archive is truncated: it ends in the middle",
        remedy="make or download it again",
    )
