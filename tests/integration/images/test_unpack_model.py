"""Layer application against a model: a dictionary of paths, no file system at all."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fourwalls.images.entry import Entry, Kind
from fourwalls.images.policy import Limits, Notes
from fourwalls.images.unpack import Unpacker
from fourwalls.model.errors import ImportRefusedError

Parts = tuple[str, ...]
# A directory is None, a file its content, a link its target marked by '->'; the number is the
# identity that hard links share.
Node = tuple[str | None, int]


class Refused(Exception):
    pass


class Model:
    def __init__(self) -> None:
        self.nodes: dict[Parts, Node] = {(): (None, 0)}
        self.fresh: set[Parts] = set()
        self.count = 0

    def apply(self, entry: Entry, content: str) -> None:
        if entry.path[-1].startswith(".wh."):
            self._whiteout(entry.path)
            return
        path = (*self._directory(entry.path[:-1]), entry.path[-1])
        self.count += 1
        if entry.kind is Kind.HARDLINK:
            source = (*self._resolve(entry.linked[:-1]), entry.linked[-1])
            node = self.nodes.get(source)
            if node is None or node[0] is None:
                raise Refused
            if self.nodes.get(path) != node:
                self._remove(path)
                if source not in self.nodes:
                    raise Refused
                self.nodes[path] = node
        elif entry.kind is Kind.DIRECTORY:
            if self.nodes.get(path, ("", 0))[0] is not None:
                self._remove(path)
                self.nodes[path] = (None, self.count)
        else:
            self._remove(path)
            text = f"->{entry.target}" if entry.kind is Kind.SYMLINK else content
            self.nodes[path] = (text, self.count)
        self._mark(path)

    def _resolve(self, path: Parts) -> Parts:
        real: Parts = ()
        todo = list(path)
        links = 0
        while todo:
            part = todo.pop(0)
            if part in ("", "."):
                continue
            if part == "..":
                real = real[:-1]
                continue
            node = self.nodes.get((*real, part))
            if node is None:
                raise KeyError
            if node[0] is None:
                real = (*real, part)
            elif node[0].startswith("->"):
                links += 1
                target = node[0][2:]
                if links > 40:
                    raise Refused
                real = () if target.startswith("/") else real
                todo = [*target.split("/"), *todo]
            else:
                raise Refused
        return real

    def _directory(self, path: Parts) -> Parts:
        try:
            return self._resolve(path)
        except KeyError:
            made = (*self._directory(path[:-1]), path[-1])
            if made in self.nodes:
                raise Refused from None
            self.nodes[made] = (None, 0)
            self._mark(made)
            return made

    def _whiteout(self, path: Parts) -> None:
        try:
            above = self._resolve(path[:-1])
        except (KeyError, Refused):
            return
        name = path[-1].removeprefix(".wh.")
        doomed = self._children(above) if name == ".wh..opq" else [(*above, name)]
        for each in doomed:
            self._hide(each)

    def _hide(self, path: Parts) -> None:
        if path not in self.fresh:
            self._remove(path)
        elif path in self.nodes:
            for child in self._children(path):
                self._hide(child)

    def _children(self, path: Parts) -> list[Parts]:
        return [each for each in self.nodes if each and each[:-1] == path]

    def _remove(self, path: Parts) -> None:
        for each in [each for each in self.nodes if each[: len(path)] == path]:
            del self.nodes[each]

    def _mark(self, path: Parts) -> None:
        self.fresh |= {path[:length] for length in range(1, len(path) + 1)}


_NAMES = st.sampled_from(["a", "b", "c"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map(tuple)
_TARGETS = st.sampled_from(
    ["a", "b", "c", "a/b", "../a", "..", "/", "/a", "/b/c", ".", "../../../../b", "c/../a"]
)
_WHITEOUTS = st.builds(
    lambda above, name: Entry((*above, name), Kind.FILE),
    st.lists(_NAMES, max_size=2).map(tuple),
    st.sampled_from([".wh.a", ".wh.b", ".wh.c", ".wh..wh..opq"]),
)
_ENTRIES = st.one_of(
    st.builds(Entry, _PATHS, st.just(Kind.FILE)),
    st.builds(Entry, _PATHS, st.just(Kind.DIRECTORY)),
    st.builds(Entry, _PATHS, st.just(Kind.SYMLINK), target=_TARGETS),
    st.builds(Entry, _PATHS, st.just(Kind.HARDLINK), linked=_PATHS),
    _WHITEOUTS,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(_ENTRIES, max_size=8), max_size=4))
def test_disk_and_model_agree(layers: list[list[Entry]]) -> None:
    model = Model()
    work = Path(tempfile.mkdtemp())
    try:
        root = work / "a"  # a name that links and entries use too
        root.mkdir()
        with Unpacker(root, Limits(), Notes()) as unpacker:
            for layer in layers:
                unpacker.begin_layer()
                model.fresh = set()
                for number, entry in enumerate(layer):
                    content = f"{number}"
                    wanted = refused = False
                    try:
                        model.apply(entry, content)
                    except (Refused, KeyError):
                        refused = True
                    try:
                        sized = _with_size(entry, len(content))
                        unpacker.apply(sized, io.BytesIO(content.encode()), whiteouts=True)
                    except ImportRefusedError:
                        wanted = True
                    assert refused == wanted, entry
                    if refused:
                        return
            unpacker.finish()
        assert _on_disk(root) == _of_model(model)
    finally:
        assert os.listdir(work) == ["a"]
        shutil.rmtree(work)


def _with_size(entry: Entry, size: int) -> Entry:
    if entry.kind is not Kind.FILE:
        return entry
    return Entry(entry.path, entry.kind, size=size)


def _of_model(model: Model) -> dict[Parts, tuple[str | None, frozenset[Parts]]]:
    groups: dict[int, set[Parts]] = {}
    for path, (text, identity) in model.nodes.items():
        if text is not None:
            groups.setdefault(identity, set()).add(path)
    return {
        path: (text, frozenset(groups[identity] if text is not None else ()))
        for path, (text, identity) in model.nodes.items()
        if path
    }


def _on_disk(root: Path) -> dict[Parts, tuple[str | None, frozenset[Parts]]]:
    found: dict[Parts, tuple[str | None, int]] = {}
    groups: dict[int, set[Parts]] = {}
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(directory, name)
            parts = path.relative_to(root).parts
            text = None
            if path.is_symlink():
                text = f"->{os.readlink(path)}"
            elif path.is_file():
                text = path.read_text()
            inode = path.lstat().st_ino
            found[parts] = (text, inode)
            if text is not None:
                groups.setdefault(inode, set()).add(parts)
    return {
        parts: (text, frozenset(groups[inode] if text is not None else ()))
        for parts, (text, inode) in found.items()
    }
