"""Every test here has an installation of its own and leaves neither mount nor loop device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fourwalls.images.mounts import unmount_idle
from fourwalls.linux.mount import mounts_below
from fourwalls.linux.places import Places


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() == 0:
        return
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.skip(reason="needs root: mounts, owners, chroot"))


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Places]:
    """Empty run and state directories; nothing is mounted or half-made there afterwards."""
    places = Places(tmp_path / "run", tmp_path / "state")
    yield places
    unmount_idle(places, set())
    assert mounts_below(tmp_path) == []
    assert list(places.building.glob("work-*")) == []
    assert [f for f in Path("/sys/block").glob("loop*/loop/backing_file") if _is_ours(f)] == []


@pytest.fixture
def rootfs(tmp_path: Path) -> Path:
    """A tiny root filesystem in a directory."""
    root = tmp_path / "rootfs"
    for name in ("bin", "etc", "home"):
        (root / name).mkdir(parents=True)
    (root / "bin" / "tool").write_bytes(b"#!/bin/sh\n" * 1000)
    (root / "bin" / "tool").chmod(0o4755)
    os.link(root / "bin" / "tool", root / "bin" / "alias")
    (root / "etc" / "release").symlink_to("../bin/tool")
    os.utime(root / "bin" / "tool", (1000000000, 1000000000))
    return root


def _is_ours(backing_file: Path) -> bool:
    try:
        return "/rootfs" in backing_file.read_text() or "image.erofs" in backing_file.read_text()
    except OSError:
        return False  # freed while we looked
