"""Copying out of a sandbox that lies about everything it can lie about."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fourwalls.guest.messages import Entry
from fourwalls.host.copy_out import CopyOut
from fourwalls.model.errors import FileError, LimitError, PathNotFoundError

Tree = dict[str, "Tree | bytes | str"]


class _Stream:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces()

    async def _pieces(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._data), 3):
            yield self._data[start : start + 3]

    def close(self) -> None:
        pass


class _FakeFiles:
    """A tree of directories (dict), files (bytes) and anything else (its kind)."""

    def __init__(self, tree: Tree, mode: int = 0o7755, size: int | None = None) -> None:
        self._tree = tree
        self._mode = mode
        self._size = size

    def _find(self, path: bytes) -> Any:
        found: Any = self._tree
        for part in path.decode().strip("/").split("/"):
            if not isinstance(found, dict) or part not in found:
                raise PathNotFoundError(path.decode())
            found = found[part]
        return found

    def _entry(self, path: bytes) -> Entry:
        found = self._find(path)
        kind = {dict: "dir", bytes: "file"}.get(type(found), found)
        size = len(found) if isinstance(found, bytes) else 0
        name = path.rpartition(b"/")[2]
        return Entry(name=name, path=path, kind=kind, mode=self._mode, size=self._size or size)

    async def stat(self, path: bytes) -> Entry:
        return self._entry(path)

    async def list(self, path: bytes, depth: int) -> list[Entry]:
        return [self._entry(path + b"/" + name.encode()) for name in self._find(path)]

    async def read(self, path: bytes) -> _Stream:
        return _Stream(self._find(path))


def _copy(tree: Tree, limit: int = 1000, **options: Any) -> CopyOut:
    files: Any = _FakeFiles(tree, **options)
    return CopyOut(files, limit)


async def test_a_tree(tmp_path: Path) -> None:
    copy = _copy({"d": {"a": b"hello", "sub": {"b": b""}, "l": "symlink", "f": "fifo"}})
    done = await copy.copy(b"/d", tmp_path / "out")
    assert (tmp_path / "out/a").read_bytes() == b"hello"
    assert (tmp_path / "out/sub/b").read_bytes() == b""
    assert sorted(os.listdir(tmp_path / "out")) == ["a", "sub"]
    assert (done.files, done.size) == (2, 5)
    assert done.left_out == ["/d/l: symlink", "/d/f: fifo"]
    mode = (tmp_path / "out/a").stat().st_mode
    assert mode & 0o7000 == 0, "no special permission bits"
    assert mode & 0o100


async def test_into_directories_that_exist(tmp_path: Path) -> None:
    tree: Tree = {"d": {"a": b"new"}, "f": b"file"}
    (tmp_path / "a").write_text("an older, longer one")
    await _copy(tree).copy(b"/d", tmp_path)
    assert (tmp_path / "a").read_bytes() == b"new"
    await _copy(tree).copy(b"/f", tmp_path)
    assert (tmp_path / "f").read_bytes() == b"file"


async def test_symlinks_of_the_host_are_not_followed(tmp_path: Path) -> None:
    outside, out = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    (outside / "a").write_text("precious")
    out.mkdir()
    (out / "a").symlink_to(outside / "a")
    with pytest.raises(FileError):
        await _copy({"d": {"a": b"evil"}}).copy(b"/d", out)
    (out / "sub").symlink_to(outside)
    with pytest.raises(FileError):
        await _copy({"d": {"sub": {"a": b"evil"}}}).copy(b"/d", out)
    assert (outside / "a").read_text() == "precious"


async def test_a_symlink_of_the_sandbox_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a symlink"):
        await _copy({"l": "symlink"}).copy(b"/l", tmp_path / "out")
    assert os.listdir(tmp_path) == []


async def test_a_pipe_of_the_host_does_not_make_us_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    with pytest.raises(FileError):
        await _copy({"f": b"x"}).copy(b"/f", tmp_path / "f")


async def test_too_large_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(LimitError, match="disk holds no more"):
        await _copy({"f": b"x"}, limit=10, size=11).copy(b"/f", tmp_path / "f")
    assert os.listdir(tmp_path) == []


async def test_a_file_that_grows_meanwhile(tmp_path: Path) -> None:
    with pytest.raises(LimitError):
        await _copy({"f": b"x" * 100}, limit=10, size=1).copy(b"/f", tmp_path / "f")
    assert os.listdir(tmp_path) == [], "half a file is worse than none"


async def test_deep_trees_end(tmp_path: Path) -> None:
    tree: Tree = {}
    for _ in range(200):
        tree = {"d": tree}
    with pytest.raises(LimitError, match="directories deep"):
        await _copy(tree).copy(b"/d", tmp_path / "out")


async def test_nowhere_to_write(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file or directory"):
        await _copy({"f": b"x"}).copy(b"/f", tmp_path / "none" / "f")
    with pytest.raises(PathNotFoundError):
        await _copy({}).copy(b"/f", tmp_path / "f")
