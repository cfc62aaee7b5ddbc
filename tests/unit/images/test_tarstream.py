"""The tar reader agrees with the standard library on good archives and refuses bad ones."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fourwalls.images.entry import Entry, Kind, safe_path
from fourwalls.images.policy import Notes
from fourwalls.images.tarstream import parse_pax, read_tar
from fourwalls.model.errors import ImportRefusedError


def read(data: bytes, *, end_required: bool = True) -> list[tuple[Entry, bytes]]:
    stream = io.BytesIO(data)
    found = read_tar(stream, Notes(), end_required=end_required)
    return [(entry, content.read(1 << 30)) for entry, content in found]


def archive(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in fields.items():
        setattr(info, key, value)
    return info


_LETTERS = st.characters(blacklist_characters="/\0", blacklist_categories=("Cs",))
_NAME = st.text(_LETTERS, min_size=1, max_size=60).filter(lambda name: name not in (".", ".."))


@given(
    st.lists(st.tuples(st.lists(_NAME, min_size=1, max_size=5), st.binary(max_size=1500))),
    st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
    st.integers(0, (1 << 33) - 1),
)
def test_reads_what_tarfile_writes(
    files: list[tuple[list[str], bytes]], form: int, mtime: int
) -> None:
    data = archive(
        *((member("/".join(parts), mtime=mtime, uid=70000), body) for parts, body in files),
        form=form,
    )
    found = read(data)
    assert [(entry.path, body) for entry, body in found] == [(tuple(p), b) for p, b in files]
    assert all(entry.mtime == mtime and entry.uid == 70000 for entry, _ in found)


def test_kinds_and_attributes() -> None:
    capability = bytes(20)
    data = archive(
        (member("./", tarfile.DIRTYPE, mode=0o700), b""),
        (member("d/", tarfile.DIRTYPE, mode=0o1777), b""),
        (member("s", tarfile.SYMTYPE, linkname="/etc/../x"), b""),
        (member("h", tarfile.LNKTYPE, linkname="./d/f"), b""),
        (member("p", tarfile.FIFOTYPE), b""),
        (member("c", tarfile.CHRTYPE, devmajor=1, devminor=3), b""),
        (
            member(
                "x",
                mode=0o4755,
                pax_headers={
                    "SCHILY.xattr.security.capability": capability.decode(),
                    "mtime": "7.25",
                },
            ),
            b"x",
        ),
    )
    entries = [entry for entry, _ in read(data)]
    assert entries == [
        Entry((), Kind.DIRECTORY, 0o700),
        Entry(("d",), Kind.DIRECTORY, 0o1777),
        Entry(("s",), Kind.SYMLINK, target="/etc/../x"),
        Entry(("h",), Kind.HARDLINK, linked=("d", "f")),
        Entry(("p",), Kind.FIFO),
        Entry(("c",), Kind.CHAR_DEVICE, device=(1, 3)),
        Entry(
            ("x",),
            Kind.FILE,
            0o4755,
            mtime=7,
            size=1,
            xattrs={"security.capability": capability},
        ),
    ]


@pytest.mark.parametrize("end", [1, 511, 512 + 3, 1024, 1024 + 511])
def test_every_truncation_is_refused(end: int) -> None:
    data = archive((member("a"), b"a" * 10), (member("b"), b"b" * 10))
    with pytest.raises(ImportRefusedError, match="truncated"):
        read(data[:end])


def test_a_missing_end_mark_counts_only_where_it_must() -> None:
    data = archive((member("a"), b"a" * 10))[:1024]
    assert len(read(data, end_required=False)) == 1
    with pytest.raises(ImportRefusedError, match="truncated"):
        read(data)


def test_a_damaged_header_is_not_the_end() -> None:
    data = bytearray(archive((member("a"), b""), (member("b"), b"")))
    data[512 + 20] ^= 1
    with pytest.raises(ImportRefusedError, match="damaged"):
        read(bytes(data))


def _sparse() -> bytes:
    return archive((member("a", tarfile.GNUTYPE_SPARSE), b""))


def _huge_pax() -> bytes:
    header = member("a", tarfile.XHDTYPE)
    header.size = 1 << 40
    return header.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def _global_path() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", pax_headers={"path": "/etc/passwd"}) as tar:
        tar.addfile(member("a"))
    return out.getvalue()


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: b"x" * 2048, "not a tar archive"),
        (_sparse, "sparse"),
        (_huge_pax, "extension header"),
        (_global_path, "global tar header"),
        (lambda: archive((member("/abs"), b"")), "absolute"),
        (lambda: archive((member("a/../../b"), b"")), r"'\.\.'"),
        (lambda: archive((member("."), b"")), "root directory"),
        (lambda: archive((member("h", tarfile.LNKTYPE, linkname="/etc/shadow"), b"")), "absolute"),
        (lambda: archive((member("h", tarfile.LNKTYPE, linkname="../x"), b"")), r"'\.\.'"),
        (lambda: archive((member("s", tarfile.SYMTYPE, linkname=""), b"")), "target"),
        (lambda: archive((member("a", b"Z"), b"")), "not supported"),
        (lambda: archive((member("/".join("a" * 300)), b"")), "deeper"),
        (lambda: archive((member("n" * 256), b"")), "part longer"),
        (lambda: archive((member("a", pax_headers={"uid": "-1"}), b"")), "uid"),
        (lambda: archive((member("a", pax_headers={"size": "1e3"}), b"")), "size"),
        (lambda: archive((member("a", pax_headers={"mtime": "nan"}), b"")), "mtime"),
        (lambda: archive((member("a", pax_headers={"path": "x\0y"}), b"")), "NUL"),
        (lambda: archive((member("a", pax_headers={"GNU.sparse.major": "1"}), b"")), "sparse"),
    ],
)
def test_refused(make: Callable[[], bytes], complaint: str) -> None:
    with pytest.raises(ImportRefusedError, match=complaint):
        read(make())


@given(st.binary(max_size=3000))
def test_garbage_is_refused_or_empty(data: bytes) -> None:
    try:
        read(data)
    except ImportRefusedError:
        return
    assert not any(data[:512])


@given(st.binary(max_size=200))
def test_pax_records_never_crash(data: bytes) -> None:
    try:
        list(parse_pax(data))
    except ImportRefusedError:
        return


@given(st.text())
def test_safe_paths_stay_inside(text: str) -> None:
    try:
        parts = safe_path(text)
    except ImportRefusedError:
        return
    assert not text.startswith("/")
    for part in parts:
        assert part not in ("", ".", "..")
        assert "/" not in part
        assert "\0" not in part
