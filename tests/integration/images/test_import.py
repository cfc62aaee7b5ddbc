"""Imports from end to end: archives, directories, layouts, a registry; and what is refused."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import socket
import subprocess
from pathlib import Path

import pytest

from fourwalls.images.architecture import host_architecture
from fourwalls.images.importing import import_directory, import_oci, import_tar
from fourwalls.images.manifest import Manifest
from fourwalls.images.mounts import mounted
from fourwalls.images.names import TemplateName
from fourwalls.images.policy import Limits
from fourwalls.images.progress import Progress
from fourwalls.images.store import TemplateStore
from fourwalls.linux.places import Places
from fourwalls.model.errors import (
    ImportRefusedError,
    InvalidArgumentError,
    TemplateError,
)

from .registry import serving
from .tars import LayoutBuilder, digest, directory, fifo, file, hardlink, layout, symlink, tar

_NAME = TemplateName.parse("imported")
_LOWER = tar(
    directory("etc"),
    file("etc/passwd", b"root:x:0:0::/root:/bin/sh\n"),
    file("etc/old"),
    file("bin/su", b"su", mode=0o4755),
    hardlink("bin/alias", "bin/su"),
)
_UPPER = tar(file("etc/.wh.old"), file("etc/new", b"new"), symlink("sbin", "bin"))
_CONFIG = {
    "Env": ["PATH=/bin", "A=b=c", "broken"],
    "User": "1000:1000",
    "WorkingDir": "/srv",
    "Entrypoint": ["/bin/su"],
    "Cmd": ["-c", "true"],
}


@pytest.fixture(autouse=True)
def _only_amd64_layouts_are_built() -> None:
    if host_architecture() != "amd64":
        pytest.skip("the test images are made for amd64")


def _check(places: Places, manifest: Manifest) -> None:
    root = mounted(places, manifest)
    assert (root / "etc/new").read_bytes() == b"new"
    assert not (root / "etc/old").exists()
    assert (root / "bin/su").stat().st_mode & 0o7777 == 0o4755
    assert (root / "bin/su").stat().st_nlink == 2
    assert os.readlink(root / "sbin") == "bin"
    assert (root / ".fourwalls/agent").is_file()
    assert manifest.env == {"PATH": "/bin", "A": "b=c"}
    assert (manifest.user, manifest.workdir) == ("1000:1000", "/srv")
    assert manifest.start_command == ["/bin/su", "-c", "true"]
    assert manifest.source.notes == ["the environment entry 'broken' was left out"]


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_a_layout(own: Places, tmp_path: Path, compression: str) -> None:
    root = layout(tmp_path / "l", _LOWER, _UPPER, compression=compression, config=_CONFIG)
    manifest = import_oci(own, str(root), _NAME)
    _check(own, manifest)
    assert manifest.source.kind == "oci"
    assert len(manifest.source.layers) == 2
    assert manifest.source.manifest_digest.startswith("sha256:")


def test_archives(own: Places, tmp_path: Path) -> None:
    root = layout(tmp_path / "l", _LOWER, _UPPER, config=_CONFIG)
    archive = tmp_path / "archive.tar"
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    first = import_oci(own, str(archive), _NAME)
    _check(own, first)
    saved = tmp_path / "saved.tar"
    command = ["skopeo", "copy", "-q", f"oci:{root}", f"docker-archive:{saved}:tools:v1"]
    subprocess.run(command, check=True)
    assert import_oci(own, str(saved), _NAME).digest == first.digest
    assert import_oci(own, f"{saved}:tools:v1", _NAME).digest == first.digest


def test_a_registry(own: Places, tmp_path: Path) -> None:
    builder = LayoutBuilder(tmp_path / "l")
    image = builder.image(_LOWER, _UPPER, config=_CONFIG)
    other = builder.image(_LOWER, architecture="arm64")
    index = builder.json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [other, image],
        },
        "application/vnd.oci.image.index.v1+json",
    )
    with serving(builder.root, index) as address:
        for reference in (f"docker://{address}/team/tools:v1", f"{address}/team/tools"):
            _check(own, import_oci(own, reference, _NAME, insecure=True))
        with pytest.raises(TemplateError, match="skopeo could not copy") as error:
            import_oci(own, f"{address}/team/tools", _NAME)
        assert error.value.remedy == "if you trust this registry all the same, add --insecure"
        blob = builder.path(digest(gzip.compress(_UPPER, mtime=0)))
        blob.write_bytes(blob.read_bytes()[:-1] + b"x")
        with pytest.raises(TemplateError, match="skopeo could not copy"):
            import_oci(own, f"{address}/team/tools:v2", _NAME, insecure=True)


def test_several_images_in_one_layout(own: Places, tmp_path: Path) -> None:
    builder = LayoutBuilder(tmp_path / "l")
    reference = "org.opencontainers.image.ref.name"
    builder.index(
        {**builder.image(_LOWER), "annotations": {reference: "one"}},
        {**builder.image(_LOWER, _UPPER, config=_CONFIG), "annotations": {reference: "two"}},
    )
    with pytest.raises(InvalidArgumentError, match="several images: one, two"):
        import_oci(own, str(builder.root), _NAME)
    _check(own, import_oci(own, f"{builder.root}:two", _NAME))
    with pytest.raises(InvalidArgumentError, match="no image 'three'"):
        import_oci(own, f"{builder.root}:three", _NAME)


def test_damaged_and_dishonest_images(own: Places, tmp_path: Path) -> None:
    bad_digest = "sha256:" + "0" * 64
    for number, (options, complaint) in enumerate(
        (
            ({"diff_ids": [bad_digest]}, "layer 1 of 1: the content has the digest"),
            ({"diff_ids": ["md5:00"]}, "not a sha256"),
            ({"diff_ids": [bad_digest, bad_digest]}, "1 layers, its configuration lists 2"),
            ({"layer_type": "application/vnd.oci.image.layer.v1.tar"}, "tar archive"),
            (
                {
                    "compression": "none",
                    "layer_type": "application/vnd.oci.image.layer.v1.tar+zstd",
                },
                "zstd stream",
            ),
            (
                {
                    "compression": "none",
                    "layer_type": "application/vnd.oci.image.layer.v1.tar+gzip",
                },
                "gzip stream",
            ),
            ({"layer_type": "application/vnd.example+encrypted"}, "media type"),
            ({"architecture": "s390x"}, "not made for linux/amd64, only for linux/s390x"),
        )
    ):
        root = layout(tmp_path / f"l{number}", _LOWER, **options)  # type: ignore[arg-type]
        with pytest.raises(ImportRefusedError, match=complaint):
            import_oci(own, str(root), _NAME)
    assert TemplateStore(own).list() == []


@pytest.mark.parametrize("damage", ["flipped", "short", "missing", "link", "fifo"])
def test_damaged_blobs(own: Places, tmp_path: Path, damage: str) -> None:
    root = layout(tmp_path / "l", _LOWER)
    blob = LayoutBuilder.path(_layout_of(root), digest(gzip.compress(_LOWER, mtime=0)))
    data = blob.read_bytes()
    blob.unlink()
    if damage == "flipped":
        blob.write_bytes(data[:-1] + b"\xff")
    elif damage == "short":
        blob.write_bytes(data[:-1])
    elif damage == "link":
        blob.symlink_to("/etc/passwd")
    elif damage == "fifo":
        os.mkfifo(blob)
    with pytest.raises(ImportRefusedError, match=r"damaged|has no|not a regular"):
        import_oci(own, str(root), _NAME)


def test_a_blob_name_cannot_leave_the_layout(own: Places, tmp_path: Path) -> None:
    root = layout(tmp_path / "l", _LOWER)
    index = json.loads((root / "index.json").read_text())
    index["manifests"][0]["digest"] = "sha256:../../../index.json"
    (root / "index.json").write_text(json.dumps(index))
    with pytest.raises(ImportRefusedError, match="not a sha256"):
        import_oci(own, str(root), _NAME)
    (root / "index.json").write_text("[" * 100_000)
    with pytest.raises(ImportRefusedError, match="not valid"):
        import_oci(own, str(root), _NAME)


def test_a_decompression_bomb(own: Places, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.tar.gz"
    bomb.write_bytes(gzip.compress(tar(file("zeros", bytes(50_000_000)))))
    assert bomb.stat().st_size < 100_000
    with pytest.raises(ImportRefusedError, match="more than 10000000 bytes"):
        import_tar(own, bomb, _NAME, limits=Limits(stream_bytes=10_000_000))


def test_tar_archives_with_every_compression(own: Places, tmp_path: Path) -> None:
    data = tar(directory("./"), file("bin/su", b"su", mode=0o4755), file(".wh.literal"))
    zstd = subprocess.run(["zstd", "-cq"], input=data, capture_output=True, check=True).stdout
    digests = set()
    for number, packed in enumerate((data, gzip.compress(data), lzma.compress(data), zstd)):
        path = tmp_path / f"{number}.tar"
        path.write_bytes(packed)
        digests.add(import_tar(own, path, _NAME).digest)
        path.write_bytes(packed[: len(packed) * 2 // 3] if number else packed[:1700])
        with pytest.raises(ImportRefusedError, match="truncated"):
            import_tar(own, path, _NAME)
    assert len(digests) == 1
    root = mounted(own, TemplateStore(own).get("imported"))
    assert (root / ".wh.literal").exists()  # whiteouts mean something only in layers
    assert TemplateStore(own).get("imported").user == "root"


def test_a_filesystem_image_is_not_an_archive(own: Places, rootfs: Path) -> None:
    image = TemplateStore(own).image(import_directory(own, rootfs, _NAME))
    with pytest.raises(ImportRefusedError, match=r"not a tar archive"):
        import_tar(own, image, TemplateName.parse("other"))
    empty = rootfs.parent / "empty.tar"
    empty.write_bytes(bytes(10240))
    with pytest.raises(ImportRefusedError, match="holds no files"):
        import_tar(own, empty, TemplateName.parse("other"))
    with pytest.raises((ImportRefusedError, InvalidArgumentError, TemplateError)):
        import_oci(own, str(image), TemplateName.parse("other"))


def test_directories(own: Places, rootfs: Path, tmp_path: Path) -> None:
    os.mkfifo(rootfs / "fifo")
    (rootfs / "outside").symlink_to(tmp_path)
    os.setxattr(rootfs / "etc", "user.note", b"kept")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(rootfs / "socket"))
    seen: list[Progress] = []
    manifest = import_directory(own, rootfs, _NAME, report=seen.append)
    root = mounted(own, manifest)
    assert (root / "fifo").is_fifo()
    assert os.readlink(root / "outside") == str(tmp_path)
    assert os.getxattr(root / "etc", "user.note") == b"kept"
    assert not (root / "socket").exists()
    assert manifest.source.notes == ["sockets were left out"]
    assert [progress.step for progress in seen] == ["unpack", "note", "image", "digest", "done"]
    assert seen[-1].fraction == 1.0


def test_reserved_names(own: Places, tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    for members in (
        [symlink(".fourwalls", "/etc")],
        [file(".fourwalls/other")],
        [directory(".fourwalls/agent")],
        [symlink("proc", "etc"), directory("etc")],
        [fifo("dev")],
    ):
        path.write_bytes(tar(*members))
        with pytest.raises(ImportRefusedError, match=r"reserved|mount point"):
            import_tar(own, path, _NAME)
    path.write_bytes(tar(symlink(".fourwalls/agent", "/etc/passwd")))
    root = mounted(own, import_tar(own, path, _NAME))
    assert not (root / ".fourwalls/agent").is_symlink()
    assert (root / ".fourwalls/agent").read_bytes() == b""


def test_what_does_not_exist(own: Places, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        import_tar(own, tmp_path / "no", _NAME)
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        import_directory(own, tmp_path / "no", _NAME)
    with pytest.raises(InvalidArgumentError, match="neither a file here"):
        import_oci(own, str(tmp_path / "no"), _NAME)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidArgumentError, match="not an OCI image layout"):
        import_oci(own, str(tmp_path / "empty"), _NAME)


def _layout_of(root: Path) -> LayoutBuilder:
    builder = LayoutBuilder.__new__(LayoutBuilder)
    builder.root = root
    return builder
