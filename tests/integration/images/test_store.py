"""The store: adding, finding, removing, and what damage does."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from fourwalls.images.importing import import_directory
from fourwalls.images.manifest import Manifest, Settings, decode, encode
from fourwalls.images.mounts import held, mounted, unmount_idle
from fourwalls.images.names import TemplateName
from fourwalls.images.store import TemplateStore
from fourwalls.linux import loop, mount
from fourwalls.linux.places import Places
from fourwalls.model.errors import TemplateCorruptError, TemplateNotFoundError

_TINY = TemplateName.parse("tiny")


def _import(places: Places, rootfs: Path, name: str = "tiny", **settings: str) -> Manifest:
    return import_directory(places, rootfs, TemplateName.parse(name), settings=Settings(**settings))


def test_add_find_mount_unmount(own: Places, rootfs: Path) -> None:
    manifest = _import(own, rootfs)
    store = TemplateStore(own)
    assert store.get("tiny") == manifest
    assert store.get("tiny:latest") == store.get(manifest.digest) == store.get(manifest.hex)
    assert [stored.names for stored in store.list()] == [(_TINY,)]
    assert manifest.size_bytes == store.image(manifest).stat().st_size

    root = mounted(own, manifest)
    assert mounted(own, manifest) == root
    assert len(mount.mounts_below(root)) == 1
    tool = (root / "bin" / "tool").stat()
    assert (tool.st_mode & 0o7777, tool.st_mtime, tool.st_nlink) == (0o4755, 1000000000, 2)
    assert os.readlink(root / "etc" / "release") == "../bin/tool"
    assert (root / ".fourwalls" / "agent").read_bytes() == b""
    assert {"dev", "proc", "run", "sys", "tmp"} <= set(os.listdir(root))
    with pytest.raises(OSError, match="Read-only"):
        (root / "x").touch()
    line = next(m for m in Path("/proc/mounts").read_text().splitlines() if str(root) in m)
    options = line.split()[3].split(",")
    assert {"ro", "nodev"} <= set(options)
    assert "nosuid" not in options

    assert unmount_idle(own, {manifest.hex}) == []
    assert unmount_idle(own, set()) == [manifest.hex]
    assert not root.exists()


def test_the_same_tree_gives_the_same_digest_and_settings_count(own: Places, rootfs: Path) -> None:
    first = _import(own, rootfs)
    assert _import(own, rootfs, "other:v1").digest == first.digest
    assert _import(own, rootfs, "third", user="user").digest != first.digest
    store = TemplateStore(own)
    assert {str(name) for t in store.list() for name in t.names} == {"tiny", "other:v1", "third"}


def test_a_name_moves_to_the_newer_template(own: Places, rootfs: Path) -> None:
    first = _import(own, rootfs)
    (rootfs / "new").touch()
    second = _import(own, rootfs)
    store = TemplateStore(own)
    assert store.get("tiny") == second
    assert store.get(first.digest) == first
    assert {(t.names, t.manifest.hex) for t in store.list()} == {
        ((_TINY,), second.hex),
        ((), first.hex),
    }


def test_remove(own: Places, rootfs: Path) -> None:
    manifest = _import(own, rootfs)
    _import(own, rootfs, "other")
    store = TemplateStore(own)
    root = mounted(own, manifest)
    assert store.remove("other") is None
    assert store.remove("tiny") == manifest
    assert store.list() == []
    with pytest.raises(TemplateNotFoundError):
        store.get("tiny")
    with pytest.raises(TemplateNotFoundError, match="stored: none"):
        store.remove("tiny")
    assert (root / "bin" / "tool").read_bytes()  # who uses it goes on
    assert [path.name for path in own.templates.iterdir()] != []

    again = _import(own, rootfs)
    _import(own, rootfs, "other")
    assert store.remove(again.digest) == again
    assert list((own.templates / "names").iterdir()) == []


def test_unknown_templates(own: Places) -> None:
    with pytest.raises(TemplateNotFoundError, match="template build base"):
        TemplateStore(own).get("nosuch")
    with pytest.raises(TemplateNotFoundError):
        TemplateStore(own).get("a" * 64)
    with pytest.raises(TemplateNotFoundError):
        TemplateStore(own).remove("nosuch")


@pytest.mark.parametrize("damage", ["flipped bit", "truncated", "missing", "longer", "writable"])
def test_a_damaged_image_is_never_mounted(own: Places, rootfs: Path, damage: str) -> None:
    manifest = _import(own, rootfs)
    image = TemplateStore(own).image(manifest)
    match damage:
        case "flipped bit":
            with image.open("r+b") as file:
                file.seek(manifest.size_bytes // 2)
                byte = file.read(1)[0]
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte ^ 1]))
        case "truncated":
            os.truncate(image, manifest.size_bytes - 4096)
        case "missing":
            image.unlink()
        case "longer":
            with image.open("ab") as file:
                file.write(b"x")
        case "writable":
            image.chmod(0o666)
    with pytest.raises(TemplateCorruptError, match="import it again"):
        mounted(own, manifest)
    assert mount.mounts_below(own.run) == []
    # The remedy works.
    assert _import(own, rootfs) == TemplateStore(own).get("tiny")
    mounted(own, TemplateStore(own).get("tiny"))


def test_a_changed_manifest_is_noticed(own: Places, rootfs: Path) -> None:
    manifest = _import(own, rootfs)
    path = own.templates / manifest.hex / "manifest.json"
    path.chmod(0o644)
    path.write_bytes(encode(manifest).replace(b'"user": "root"', b'"user": "evil"'))
    with pytest.raises(TemplateCorruptError, match="was changed"):
        mounted(own, decode(path.read_bytes(), path))
    path.write_text("{")
    with pytest.raises(TemplateCorruptError):
        TemplateStore(own).get("tiny")
    assert TemplateStore(own).list() == []
    assert TemplateStore(own).remove("tiny") is None
    assert not path.exists()


def test_a_foreign_filesystem_image_is_not_mounted(own: Places, rootfs: Path) -> None:
    manifest = _import(own, rootfs)
    (rootfs / "evil").touch()
    evil = _import(own, rootfs, "evil")
    store = TemplateStore(own)
    store.image(manifest).unlink()
    os.link(store.image(evil), store.image(manifest))
    with pytest.raises(TemplateCorruptError):
        mounted(own, manifest)


def test_held_templates_stay(own: Places, rootfs: Path) -> None:
    manifest = _import(own, rootfs)
    with held(own, manifest) as root, held(own, manifest):
        assert unmount_idle(own, set()) == []
        assert (root / "bin").is_dir()
    assert unmount_idle(own, set()) == [manifest.hex]


def test_busy_templates_stay(own: Places, rootfs: Path) -> None:
    manifest = _import(own, rootfs)
    with (mounted(own, manifest) / "bin" / "tool").open():
        assert unmount_idle(own, set()) == []
    assert unmount_idle(own, set()) == [manifest.hex]


def test_many_mount_at_once_and_one_mount_results(own: Places, rootfs: Path) -> None:
    manifest = _import(own, rootfs)
    threads = [threading.Thread(target=mounted, args=(own, manifest)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(mount.mounts_below(own.run)) == 1


def test_through_a_loop_device(own: Places, rootfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on kernels that cannot mount EROFS from a file."""
    from fourwalls.images import mounts

    def old_kernel(source: str | Path, target: Path, fstype: str, flags: int) -> None:
        if not str(source).startswith("/dev/loop"):
            raise OSError(15, "Block device required")
        mount.mount(source, target, fstype, flags)

    monkeypatch.setattr(mounts, "mount", old_kernel)
    manifest = _import(own, rootfs)
    assert (mounted(own, manifest) / "bin" / "tool").stat().st_size == 10000


def test_loop_devices_free_themselves(tmp_path: Path) -> None:
    (tmp_path / "rootfs.img").write_bytes(bytes(1 << 20))
    with loop.attached(tmp_path / "rootfs.img", read_only=True) as device:
        backing = Path("/sys/block", Path(device).name, "loop", "backing_file")
        assert backing.read_text().strip() == str(tmp_path / "rootfs.img")
        assert (backing.parent.parent / "ro").read_text().strip() == "1"
    assert not backing.exists()
