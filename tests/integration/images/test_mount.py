"""mount(2) and its errors."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from fourwalls.linux.mount import is_mounted, mount, mounts_below, unmount


def test_mount_and_unmount_under_an_awkward_name(tmp_path: Path) -> None:
    target = tmp_path / "a b\\c\td"
    target.mkdir()
    assert not is_mounted(target)
    mount("none", target, "tmpfs", 0, "size=64k")
    try:
        assert is_mounted(target)
        (target / "in").mkdir()
        mount("none", target / "in", "tmpfs")
        assert mounts_below(tmp_path) == [str(target / "in"), str(target)]
        with pytest.raises(OSError, match="unmount") as busy:
            unmount(target)
        assert busy.value.errno == errno.EBUSY
        unmount(target / "in")
    finally:
        unmount(target)
    assert not is_mounted(target)


def test_errors_name_both_ends(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"mount nosuch '/x' at '.*': No such device") as error:
        mount("/x", tmp_path, "nosuch")
    assert error.value.errno == errno.ENODEV
    with pytest.raises(OSError, match="Invalid argument"):
        unmount(tmp_path)
    (tmp_path / "link").symlink_to("/")
    with pytest.raises(OSError, match="Invalid argument"):
        unmount(tmp_path / "link")
