"""Layers, good and hostile, written to disk."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest

from fourwalls.images.policy import Limits, Notes
from fourwalls.images.tarstream import read_tar
from fourwalls.images.unpack import Unpacker
from fourwalls.model.errors import ImportRefusedError

from .tars import Member, device, directory, fifo, file, hardlink, symlink, tar


class Stage:
    """A root to unpack into, next to a file that must stay untouched."""

    def __init__(self, path: Path) -> None:
        self.root = path / "root"
        self.root.mkdir()
        self.outside = path / "outside"
        self.outside.mkdir()
        (self.outside / "secret").write_text("secret")
        self.notes = Notes()

    def unpack(self, *layers: list[Member], limits: Limits | None = None) -> None:
        with Unpacker(self.root, limits or Limits(), self.notes) as unpacker:
            for layer in layers:
                unpacker.begin_layer()
                stream = io.BytesIO(tar(*layer))
                for entry, content in read_tar(stream, self.notes, end_required=True):
                    unpacker.apply(entry, content, whiteouts=True)
            unpacker.finish()

    def names(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*")}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture(autouse=True)
def _nothing_outside_changes(stage: Stage) -> object:
    yield
    assert {path.name for path in stage.root.parent.iterdir()} == {"root", "outside"}
    assert os.listdir(stage.outside) == ["secret"]
    assert (stage.outside / "secret").read_text() == "secret"
    assert (stage.outside / "secret").stat().st_nlink == 1


def test_everything_a_rootfs_has(stage: Stage) -> None:
    stage.unpack(
        [
            directory("./", mode=0o711),
            directory("bin", mode=0o2775, mtime=5, uid=7, gid=8),
            file("bin/su", b"su", mode=0o4755, uid=1, gid=2, mtime=1234),
            hardlink("bin/alias", "bin/su"),
            symlink("bin/sh", "/bin/su"),
            hardlink("bin/sh2", "bin/sh"),
            fifo("run/pipe"),
            file("big", b"x" * 3_000_000),
            file("owner", uid=1 << 20, gid=65536),
            file("ünï\udcff", b""),
        ]
    )
    status = (stage.root / "bin/su").stat()
    assert stat.S_IMODE(status.st_mode) == 0o4755
    assert (status.st_uid, status.st_gid, status.st_mtime, status.st_nlink) == (1, 2, 1234, 2)
    assert (stage.root / "bin").stat().st_mtime == 5
    assert stat.S_IMODE((stage.root / "bin").stat().st_mode) == 0o2775
    assert stat.S_IMODE(stage.root.stat().st_mode) == 0o711
    assert os.readlink(stage.root / "bin/sh2") == "/bin/su"
    assert stat.S_ISFIFO((stage.root / "run/pipe").stat().st_mode)
    assert (stage.root / "big").stat().st_size == 3_000_000
    owner = (stage.root / "owner").stat()
    assert (owner.st_uid, owner.st_gid) == (65534, 65534)
    assert "owners above 65535 became nobody (65534)" in stage.notes.lines
    implicit = (stage.root / "run").stat()
    assert (stat.S_IMODE(implicit.st_mode), implicit.st_mtime) == (0o755, 0)


def test_extended_attributes(stage: Stage) -> None:
    capability = bytes.fromhex("0000000200040000000000000000000000000000")
    headers = {
        "SCHILY.xattr.security.capability": capability.decode("utf-8", "surrogateescape"),
        "SCHILY.xattr.user.note": "kept",
        "SCHILY.xattr.security.selinux": "dropped",
        "SCHILY.acl.access": "dropped",
    }
    stage.unpack([file("ping", b"x", mode=0o755, pax_headers=headers)])
    path = stage.root / "ping"
    assert sorted(os.listxattr(path)) == ["security.capability", "user.note"]
    assert os.getxattr(path, "security.capability") == capability
    assert len(stage.notes.lines) == 2


@pytest.mark.parametrize("name", ["trusted.overlay.redirect", "trusted.x", "user.overlay.opaque"])
def test_attributes_that_steer_overlays_are_refused(stage: Stage, name: str) -> None:
    with pytest.raises(ImportRefusedError, match="extended attribute"):
        stage.unpack([directory("d", pax_headers={f"SCHILY.xattr.{name}": "/etc"})])


def test_usual_devices_are_dropped_and_others_refused(stage: Stage) -> None:
    stage.unpack([directory("dev"), device("dev/null", 1, 3), device("dev/console", 5, 1)])
    assert stage.names() == {"dev"}
    assert stage.notes.lines == ["the usual device nodes of /dev were left out"]
    for wrong in (
        device("dev/null", 8, 0),
        device("null", 1, 3),
        device("dev/sda", 8, 0, tarfile.BLKTYPE),
        device("dev/null", 1, 3, tarfile.BLKTYPE),
        device("whiteout", 0, 0),
        device("dev/mem", 1, 1),
    ):
        with pytest.raises(ImportRefusedError, match="device"):
            stage.unpack([wrong])


def test_whiteouts(stage: Stage) -> None:
    lower = [
        file("a/one"),
        file("a/two"),
        file("b/one"),
        file("b/sub/deep"),
        file("c/keep"),
        file("d"),
    ]
    upper = [
        file("a/.wh.one"),
        file("b/new"),
        file("b/.wh..wh..opq"),
        file("b/sub/new"),
        file(".wh.c"),
        file(".wh.d"),
        file("d", b"new"),
        file(".wh.nothing"),
        file("nowhere/.wh.nothing"),
        file(".wh..wh.plnk"),
    ]
    stage.unpack(lower, upper)
    assert stage.names() == {"a", "a/two", "b", "b/new", "b/sub", "b/sub/new", "d"}
    assert (stage.root / "d").read_bytes() == b"new"


def test_a_whiteout_hides_only_what_is_below(stage: Stage) -> None:
    stage.unpack(
        [file("a/lower"), file("x/lower")],
        [file("a/upper"), file(".wh.a"), file("x/y/upper"), file("x/.wh..wh..opq")],
    )
    assert stage.names() == {"a", "a/upper", "x", "x/y", "x/y/upper"}


@pytest.mark.parametrize("name", [".wh.", ".wh..", ".wh...", "a/.wh.b/c"])
def test_odd_whiteouts_are_refused(stage: Stage, name: str) -> None:
    with pytest.raises(ImportRefusedError, match="whiteout"):
        stage.unpack([file(name)])


def test_hard_links_to_what_is_gone_are_refused(stage: Stage) -> None:
    stage.unpack([file("a"), hardlink("b", "a")], [file(".wh.a"), hardlink("c", "b")])
    assert stage.names() == {"b", "c"}
    for layer in (
        [file("x"), file("y/.wh..wh..opq"), hardlink("h", "y/x")],
        [hardlink("h", "nosuch/x")],
        [directory("e"), hardlink("h", "e")],
        [hardlink("h", "./")],
        [file("f/g"), hardlink("f", "f/g")],
    ):
        with pytest.raises(ImportRefusedError, match="hard link"):
            stage.unpack(layer)


def test_a_link_to_itself_keeps_the_file(stage: Stage) -> None:
    stage.unpack([file("a", b"content"), hardlink("a", "a")])
    assert (stage.root / "a").read_bytes() == b"content"


def test_writing_through_a_hard_link_changes_only_the_name(stage: Stage) -> None:
    stage.unpack([file("a", b"old"), hardlink("b", "a")], [file("b", b"new")])
    assert (stage.root / "a").read_bytes() == b"old"
    assert (stage.root / "b").read_bytes() == b"new"


def test_symbolic_links_end_inside(stage: Stage) -> None:
    away = os.path.relpath(stage.outside, stage.root)
    stage.unpack(
        [
            symlink("abs", str(stage.outside)),
            symlink("up", "../../../../../.."),
            symlink("rel", away),
            directory("usr/lib"),
            symlink("lib", "usr/lib"),
            directory("outside"),
        ],
        [
            file("lib/added"),
            file("up/at_root"),
            file("rel/secret", b"inside"),
            hardlink("copy", "rel/secret"),
        ],
    )
    assert (stage.root / "usr/lib/added").exists()
    assert (stage.root / "at_root").exists()
    assert (stage.root / "outside/secret").read_bytes() == b"inside"
    assert (stage.root / "copy").read_bytes() == b"inside"
    with pytest.raises(ImportRefusedError, match="link to nowhere"):
        stage.unpack([file("abs/secret", b"owned")])


def test_hostile_links_reach_nothing(stage: Stage) -> None:
    for layer in (
        [symlink("l", "/"), file("l/../../../outside/secret")],
        [symlink("l", str(stage.outside)), hardlink("h", "l/secret")],
        [symlink("l", "l"), file("l/x")],
        [symlink("m", "n"), symlink("n", "m"), directory("m/x")],
        [file("f"), file("f/x")],
        [symlink("p", "/proc/self/root"), file("p/x")],
    ):
        with pytest.raises(ImportRefusedError):
            stage.unpack(layer)


def test_whiteouts_through_links_reach_nothing(stage: Stage) -> None:
    stage.unpack([symlink("l", str(stage.outside))], [file("l/.wh.secret")])
    stage.unpack([symlink("l", str(stage.outside))], [file("l/.wh..wh..opq")])


def test_what_stands_there_is_replaced_and_never_followed(stage: Stage) -> None:
    stage.unpack(
        [
            symlink("l", str(stage.outside / "secret")),
            symlink("d", str(stage.outside)),
            file("tree/a/b"),
            directory("kept"),
            file("kept/child"),
        ],
        [file("l", b"mine"), directory("d"), file("tree"), directory("kept", mode=0o700)],
    )
    assert (stage.root / "l").read_bytes() == b"mine"
    assert not (stage.root / "d").is_symlink()
    assert stage.names() == {"l", "d", "tree", "kept", "kept/child"}


def test_a_directory_that_became_a_fifo_or_a_link(stage: Stage) -> None:
    stage.unpack(
        [directory("d", mtime=9), directory("e/f", mtime=9), directory("g/f", mtime=3)],
        [fifo("d"), symlink("e", "g")],
    )
    assert (stage.root / "g/f").stat().st_mtime == 3


def test_bounds(stage: Stage) -> None:
    with pytest.raises(ImportRefusedError, match="more than 2 entries"):
        stage.unpack([file("a"), file("b"), file("c")], limits=Limits(entries=2))
    with pytest.raises(ImportRefusedError, match="more than 10 bytes of files"):
        stage.unpack([file("a", b"123456"), file("b", b"12345")], limits=Limits(file_bytes=10))
    deep = "/".join("d" * 200)
    with pytest.raises(ImportRefusedError, match="deeper"):
        stage.unpack([directory(deep), symlink("s", deep), file(f"s/{deep}/x")])
