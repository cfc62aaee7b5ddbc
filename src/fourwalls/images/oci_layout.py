"""An OCI image on disk: a layout directory, every blob of it checked against its digest."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from fourwalls.images.streams import Compression
from fourwalls.model.errors import ImportRefusedError, InvalidArgumentError

T = TypeVar("T")

_LARGEST_JSON = 4 << 20
_DEEPEST_INDEX = 3
_DIGEST = re.compile(r"(sha256|sha512):([0-9a-f]{64}|[0-9a-f]{128})")
_REF_NAME = "org.opencontainers.image.ref.name"
_INDEX_TYPES = {
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
}
_MANIFEST_TYPES = {
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
}
_CONFIG_TYPES = {
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
}
LAYER_TYPES: dict[str, Compression] = {
    "application/vnd.oci.image.layer.v1.tar": "none",
    "application/vnd.oci.image.layer.v1.tar+gzip": "gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd": "zstd",
    "application/vnd.docker.image.rootfs.diff.tar": "none",
    "application/vnd.docker.image.rootfs.diff.tar.gzip": "gzip",
}


class Platform(msgspec.Struct, frozen=True):
    """What an image runs on."""

    architecture: str = ""
    os: str = ""


class Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    """A pointer to a blob."""

    digest: str
    size: int
    media_type: str = ""
    platform: Platform | None = None
    annotations: dict[str, str] = {}


class Index(msgspec.Struct, frozen=True):
    """One image for each of several platforms."""

    manifests: list[Descriptor]


class ImageManifest(msgspec.Struct, frozen=True):
    """One image: its configuration and its layers, lowest first."""

    config: Descriptor
    layers: list[Descriptor]


class ContainerConfig(msgspec.Struct, frozen=True, rename="pascal"):
    """How a container of the image would be run."""

    env: list[str] | None = None
    user: str | None = None
    working_dir: str | None = None
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None


class RootFs(msgspec.Struct, frozen=True):
    """Digests of the layers after decompression."""

    diff_ids: list[str]


class ImageConfig(msgspec.Struct, frozen=True):
    """The configuration blob, as far as it matters here."""

    architecture: str
    os: str
    rootfs: RootFs
    config: ContainerConfig | None = None


class Layout:
    """The layout directory ``root``. Refusals are :class:`ImportRefusedError`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        if not (root / "index.json").is_file() or not (root / "oci-layout").is_file():
            raise InvalidArgumentError(
                f"{root} is not an OCI image layout: it has no oci-layout and index.json",
                remedy="for a plain root filesystem import it as a directory",
            )

    def image(self, architecture: str, tag: str = "") -> tuple[Descriptor, ImageManifest]:
        """The image for linux on ``architecture``; ``tag`` chooses among several images."""
        with _regular(self._root / "index.json") as file:
            index = _decode(file.read(_LARGEST_JSON), Index, "index.json")
        found = index.manifests
        if tag:
            found = [d for d in found if d.annotations.get(_REF_NAME) == tag]
        if not found:
            known = ", ".join(sorted(d.annotations.get(_REF_NAME, "") for d in index.manifests))
            raise InvalidArgumentError(
                f"the layout has no image {tag!r}; it has: {known or 'none'}"
            )
        descriptor = self._choose(found, architecture, 0)
        return descriptor, self._json(descriptor, ImageManifest, _MANIFEST_TYPES)

    def config(self, manifest: ImageManifest) -> ImageConfig:
        """The configuration, its list of layers being as long as the manifest's."""
        config = self._json(manifest.config, ImageConfig, _CONFIG_TYPES)
        if len(config.rootfs.diff_ids) != len(manifest.layers):
            raise ImportRefusedError(
                f"the image has {len(manifest.layers)} layers,"
                f" its configuration lists {len(config.rootfs.diff_ids)}"
            )
        return config

    @contextmanager
    def blob(self, descriptor: Descriptor) -> Iterator[io.BufferedReader]:
        """A blob opened for reading, after its size and digest have been verified."""
        algorithm, hex_digits = split_digest(descriptor.digest)
        with _regular(self._root / "blobs" / algorithm / hex_digits) as file:
            size = os.fstat(file.fileno()).st_size
            found = hashlib.file_digest(file, algorithm).hexdigest()
            if size != descriptor.size or found != hex_digits:
                raise ImportRefusedError(
                    f"blob {descriptor.digest} is damaged: it has {size} bytes (stated"
                    f" {descriptor.size}) and digest {algorithm}:{found}",
                    remedy="copy or download the image again",
                )
            file.seek(0)
            yield file

    def _choose(self, found: list[Descriptor], architecture: str, depth: int) -> Descriptor:
        if depth > _DEEPEST_INDEX:
            raise ImportRefusedError("the image's index leads to an index too many times")
        wanted = Platform(architecture, "linux")
        fitting = [d for d in found if d.platform is None or d.platform == wanted]
        if not fitting:
            there = sorted(
                f"{d.platform.os}/{d.platform.architecture}" for d in found if d.platform
            )
            raise ImportRefusedError(
                f"the image is not made for linux/{architecture}, only for {', '.join(there)}"
            )
        if len(fitting) > 1 and depth == 0:
            names = ", ".join(sorted(d.annotations.get(_REF_NAME, "?") for d in fitting))
            raise InvalidArgumentError(
                f"the layout has several images: {names}", remedy="add ':' and one of these"
            )
        chosen = fitting[0]
        if chosen.media_type in _INDEX_TYPES:
            inner = self._json(chosen, Index, _INDEX_TYPES)
            return self._choose(inner.manifests, architecture, depth + 1)
        return chosen

    def _json(self, descriptor: Descriptor, kind: type[T], allowed: set[str]) -> T:
        if descriptor.media_type not in allowed:
            raise ImportRefusedError(
                f"blob {descriptor.digest} has the media type {descriptor.media_type!a};"
                f" supported are {', '.join(sorted(allowed))}"
            )
        if descriptor.size > _LARGEST_JSON:
            raise ImportRefusedError(f"blob {descriptor.digest} is larger than {_LARGEST_JSON}")
        with self.blob(descriptor) as file:
            return _decode(file.read(), kind, descriptor.digest)


def split_digest(digest: str) -> tuple[str, str]:
    """``sha256:<hex>`` into its two halves; nothing else can name a blob file."""
    match = _DIGEST.fullmatch(digest)
    if not match or len(match[2]) != {"sha256": 64, "sha512": 128}[match[1]]:
        raise ImportRefusedError(f"{digest[:100]!a} is not a sha256 or sha512 digest")
    return match[1], match[2]


def _decode(data: bytes, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ImportRefusedError(f"{what} is not valid: {error}") from error


@contextmanager
def _regular(path: Path) -> Iterator[io.BufferedReader]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ImportRefusedError(f"the image has no {path.name}: {error.strerror}") from error
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ImportRefusedError(f"{path} is not a regular file")
        yield file
