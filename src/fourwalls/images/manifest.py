"""The manifest: everything known about a template beside its files.

The *settings* (what a sandbox started from the template sees: environment, user, commands) are
bound to the image: their digest is the UUID in the image's superblock, so that the digest of the
image file names both, and a manifest that was changed afterwards is noticed.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Literal

import msgspec

from fourwalls.images.digest import ALGORITHM, digest_of_bytes
from fourwalls.model.errors import TemplateCorruptError

VERSION = 1

SourceKind = Literal["recipe", "tar", "directory", "oci"]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a sandbox takes from its template. Empty ``workdir``: the user's home directory."""

    env: dict[str, str] = {}
    user: str = "root"
    workdir: str = ""
    start_command: list[str] = []
    ready_command: list[str] = []


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the template came from. ``layers`` are OCI digests, lowest first."""

    kind: SourceKind
    reference: str
    recipe_digest: str = ""
    manifest_digest: str = ""
    layers: list[str] = []
    notes: list[str] = []


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One template. ``digest`` is ``blake2b:<64 hex>`` of the image, ``created_at`` RFC 3339."""

    version: Literal[1] = 1
    name: str
    digest: str
    size_bytes: int
    created_at: str
    architecture: str
    settings: Settings
    source: Source

    @property
    def hex(self) -> str:
        """The digest without its algorithm: the directory name in the store."""
        return self.digest.removeprefix(f"{ALGORITHM}:")

    # The settings are read so often that they can be asked for directly.

    @property
    def env(self) -> dict[str, str]:
        return self.settings.env

    @property
    def user(self) -> str:
        return self.settings.user

    @property
    def workdir(self) -> str:
        return self.settings.workdir

    @property
    def start_command(self) -> list[str]:
        return self.settings.start_command

    @property
    def ready_command(self) -> list[str]:
        return self.settings.ready_command


def settings_uuid(settings: Settings, architecture: str) -> uuid.UUID:
    """The UUID that an image with these settings carries."""
    canonical = msgspec.json.encode([architecture, settings], order="sorted")
    return uuid.UUID(hex=digest_of_bytes(canonical)[:32])


def encode(manifest: Manifest) -> bytes:
    """JSON, stable and readable."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="sorted"), indent=2) + b"\n"


def decode(data: bytes, path: Path) -> Manifest:
    """Read a manifest; raises :class:`TemplateCorruptError` naming ``path``."""
    try:
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TemplateCorruptError(
            f"{path} is not a template manifest of version {VERSION}: {error}",
            remedy="build or import the template again",
        ) from error
