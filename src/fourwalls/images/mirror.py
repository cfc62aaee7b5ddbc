"""Where Debian packages come from: the host's own apt sources where they name a Debian mirror."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

_APT = Path("/etc/apt")


class Mirrors(NamedTuple):
    """Base addresses; ``security`` is empty if security updates shall be left out."""

    main: str
    security: str


PUBLIC = Mirrors("http://deb.debian.org/debian", "http://deb.debian.org/debian-security")


def find_mirrors(environment: Mapping[str, str] = os.environ, apt: Path = _APT) -> Mirrors:
    """``FOURWALLS_MIRROR`` and ``FOURWALLS_SECURITY_MIRROR`` (``none``: leave them out), else
    what apt uses on this host, else the public mirror.
    """
    uris = list(_uris(apt))
    main = environment.get("FOURWALLS_MIRROR") or _first(uris, "debian") or PUBLIC.main
    security = (
        environment.get("FOURWALLS_SECURITY_MIRROR")
        or _first(uris, "debian-security")
        or PUBLIC.security
    )
    return Mirrors(main.rstrip("/"), "" if security == "none" else security.rstrip("/"))


def source_lines(release: str, mirrors: Mirrors) -> list[str]:
    """The lines of sources.list for ``release``."""
    lines = [
        f"deb {mirrors.main} {release} main",
        f"deb {mirrors.main} {release}-updates main",
    ]
    if mirrors.security:
        lines.append(f"deb {mirrors.security} {release}-security main")
    return lines


def _first(uris: list[str], last_part: str) -> str | None:
    for uri in uris:
        parts = urlsplit(uri)
        if parts.scheme in ("http", "https") and parts.path.rstrip("/").endswith(f"/{last_part}"):
            return uri
    return None


def _uris(apt: Path) -> Iterator[str]:
    """Every address in sources.list, ``*.list`` and ``*.sources``, in apt's order."""
    parts = apt / "sources.list.d"
    files = [apt / "sources.list", *(sorted(parts.iterdir()) if parts.is_dir() else [])]
    for path in files:
        try:
            lines = path.read_text(errors="replace").splitlines()
        except (FileNotFoundError, PermissionError, IsADirectoryError):
            continue
        for line in lines:
            if path.suffix == ".list" and line.startswith("deb "):
                yield from (word for word in line.split()[1:] if "://" in word)
            elif path.suffix == ".sources" and line.lower().startswith("uris:"):
                yield from line.split()[1:]
