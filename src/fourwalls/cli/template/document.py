"""A template as a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fourwalls.images.manifest import Manifest
    from fourwalls.images.store import StoredTemplate


def summary(manifest: Manifest) -> dict[str, Any]:
    """What a list shows of a template."""
    return {
        "name": manifest.name,
        "digest": manifest.digest,
        "size_bytes": manifest.size_bytes,
        "created_at": manifest.created_at,
        "architecture": manifest.architecture,
        "source": f"{manifest.source.kind} {manifest.source.reference}",
    }


def stored_summary(stored: StoredTemplate) -> dict[str, Any]:
    """The same with every name that points to it."""
    return {"names": [str(name) for name in stored.names], **summary(stored.manifest)}
