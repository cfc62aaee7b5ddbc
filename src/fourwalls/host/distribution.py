"""Which distribution this host runs (format: os-release(5))."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_KNOWN = {"12": "bookworm", "13": "trixie"}


@dataclass(frozen=True)
class Distribution:
    """``identity`` and ``version`` as in os-release: ``debian``, ``12``."""

    identity: str
    version: str
    pretty_name: str

    @property
    def known(self) -> bool:
        """Whether `setup` knows the names of its packages."""
        return self.identity == "debian" and self.version in _KNOWN

    @property
    def codename(self) -> str:
        return _KNOWN.get(self.version, "") if self.identity == "debian" else ""


def read_distribution(path: Path = Path("/etc/os-release")) -> Distribution:
    """What ``path`` says; a host without the file is called unknown."""
    found: dict[str, str] = {}
    try:
        for line in path.read_text(errors="replace").splitlines():
            key, equals, value = line.partition("=")
            if equals:
                found[key] = value.strip().strip("\"'")
    except (OSError, ValueError):
        pass
    identity = found.get("ID", "unknown")
    return Distribution(identity, found.get("VERSION_ID", ""), found.get("PRETTY_NAME", identity))
