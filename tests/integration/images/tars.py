"""Small tar archives and OCI layouts for tests."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

Member = tuple[tarfile.TarInfo, bytes]

_SUFFIX = {"none": "", "gzip": "+gzip", "zstd": "+zstd"}


def file(name: str, content: bytes = b"", **fields: Any) -> Member:
    return _member(name, tarfile.REGTYPE, content, fields)


def directory(name: str, **fields: Any) -> Member:
    return _member(name, tarfile.DIRTYPE, b"", {"mode": 0o755, **fields})


def symlink(name: str, target: str) -> Member:
    return _member(name, tarfile.SYMTYPE, b"", {"linkname": target})


def hardlink(name: str, target: str) -> Member:
    return _member(name, tarfile.LNKTYPE, b"", {"linkname": target})


def device(name: str, major: int, minor: int, kind: bytes = tarfile.CHRTYPE) -> Member:
    return _member(name, kind, b"", {"devmajor": major, "devminor": minor})


def fifo(name: str) -> Member:
    return _member(name, tarfile.FIFOTYPE, b"", {"mode": 0o622})


def tar(*members: Member) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class LayoutBuilder:
    """Writes an OCI layout; every part can be made wrong on purpose."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "blobs" / "sha256").mkdir(parents=True)
        (root / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def blob(self, data: bytes, media_type: str, **more: Any) -> dict[str, Any]:
        self.path(digest(data)).write_bytes(data)
        return {"mediaType": media_type, "digest": digest(data), "size": len(data), **more}

    def path(self, blob_digest: str) -> Path:
        return self.root / "blobs" / "sha256" / blob_digest.removeprefix("sha256:")

    def image(
        self,
        *layers: bytes,
        compression: str = "gzip",
        architecture: str = "amd64",
        config: dict[str, Any] | None = None,
        diff_ids: list[str] | None = None,
        layer_type: str | None = None,
    ) -> dict[str, Any]:
        """Add an image; returns the descriptor of its manifest."""
        kind = layer_type or f"application/vnd.oci.image.layer.v1.tar{_SUFFIX[compression]}"
        descriptors = [self.blob(_compress(layer, compression), kind) for layer in layers]
        configuration = {
            "architecture": architecture,
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": diff_ids or [digest(la) for la in layers]},
            "config": config or {},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.json(configuration, "application/vnd.oci.image.config.v1+json"),
            "layers": descriptors,
        }
        return self.json(
            manifest,
            "application/vnd.oci.image.manifest.v1+json",
            platform={"architecture": architecture, "os": "linux"},
        )

    def json(self, value: Any, media_type: str, **more: Any) -> dict[str, Any]:
        return self.blob(json.dumps(value).encode(), media_type, **more)

    def index(self, *descriptors: dict[str, Any]) -> None:
        index = {"schemaVersion": 2, "manifests": list(descriptors)}
        (self.root / "index.json").write_text(json.dumps(index))


def layout(root: Path, *layers: bytes, **options: Any) -> Path:
    """A layout with one image of these layers."""
    builder = LayoutBuilder(root)
    builder.index(builder.image(*layers, **options))
    return root


def _compress(data: bytes, compression: str) -> bytes:
    if compression == "gzip":
        return gzip.compress(data, mtime=0)
    if compression == "zstd":
        return subprocess.run(["zstd", "-cq"], input=data, capture_output=True, check=True).stdout
    return data


def _member(name: str, kind: bytes, content: bytes, fields: dict[str, Any]) -> Member:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content
