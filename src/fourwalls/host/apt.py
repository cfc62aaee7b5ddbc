"""apt: the sources this host has, the one source we may add, and installing packages."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from fourwalls.images.progress import Progress, Report
from fourwalls.model.errors import FourwallsError

_APT = Path("/etc/apt")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_LAST_LINES = 30

SOURCE_FILE = _APT / "sources.list.d/fourwalls-backports.sources"
PIN_FILE = _APT / "preferences.d/fourwalls"


def has_suite(suite: str, apt: Path = _APT) -> bool:
    """Whether packages of ``suite`` can be installed already."""
    return suite in _suites(apt)


def backports_source(suite: str, mirror: str, keyring: Path = _KEYRING) -> str:
    """A source of the mirror's backports, in deb822 form."""
    signed = f"Signed-By: {keyring}\n" if keyring.exists() else ""
    return (
        "# Written by 'fourwalls setup' for packages that this Debian has only in backports.\n"
        f"Types: deb\nURIs: {mirror}\nSuites: {suite}\nComponents: main\n{signed}"
    )


def backports_pin(suite: str, packages: Sequence[str]) -> str:
    """Preferences that take ``packages`` from ``suite`` and nothing else, unless asked for."""
    return (
        f"Explanation: written by 'fourwalls setup'; only these come from {suite}\n"
        f"Package: {' '.join(packages)}\nPin: release n={suite}\nPin-Priority: 500\n"
        "\n"
        f"Package: *\nPin: release n={suite}\nPin-Priority: 100\n"
    )


def install(packages: Sequence[str], report: Report) -> None:
    """Install ``packages`` without what they merely recommend."""
    report(Progress("packages", "updating the package lists", 0.0))
    # An unrelated source may be broken; if it matters, the installation says so.
    _apt_get(["update"], report, 0.0, 0.2, check=False)
    _apt_get(
        ["install", "--yes", "--no-install-recommends", *packages], report, 0.2, 1.0, check=True
    )


def _apt_get(
    arguments: list[str], report: Report, start: float, end: float, *, check: bool
) -> None:
    command = [
        "apt-get", "-q",
        "-o", "APT::Status-Fd=1",
        "-o", "DPkg::Lock::Timeout=300",
        "-o", "Acquire::Retries=3",
        *arguments,
    ]  # fmt: skip
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    said: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            told = parse_status(line)
            if told is None:
                said = [*said[1 - _LAST_LINES :], line.rstrip()]
            else:
                detail, fraction = told
                report(Progress("packages", detail, start + (end - start) * fraction))
    if check and process.returncode != 0:
        telling = [line for line in said if line.startswith(("E:", "Err:", "W:"))] or said
        raise FourwallsError(
            f"apt-get failed ({process.returncode}):\n" + "\n".join(telling[-8:]),
            remedy=f"apt-get install {' '.join(arguments[3:])}, and see what it says",
        )


def parse_status(line: str) -> tuple[str, float] | None:
    """What a line of APT::Status-Fd tells: words and how far it is (0..1)."""
    kind, _, rest = line.rstrip().partition(":")
    if kind not in ("pmstatus", "dlstatus"):
        return None
    parts = rest.split(":", 2)
    if len(parts) != 3:
        return None
    try:
        percent = float(parts[1])
    except ValueError:
        return None
    # Downloading is the first half of the way, unpacking and configuring the second.
    half = 0.0 if kind == "dlstatus" else 0.5
    return parts[2], half + min(max(percent, 0.0), 100.0) / 200


def _suites(apt: Path) -> Iterator[str]:
    parts = apt / "sources.list.d"
    files = [apt / "sources.list", *(sorted(parts.iterdir()) if parts.is_dir() else [])]
    for path in files:
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        if path.suffix == ".list":
            yield from _suites_of_lines(text)
        elif path.suffix == ".sources":
            yield from _suites_of_stanzas(text)


def _suites_of_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words or words[0] != "deb":
            continue
        where = next((n for n, word in enumerate(words) if "://" in word), len(words))
        yield from words[where + 1 : where + 2]


def _suites_of_stanzas(text: str) -> Iterator[str]:
    for stanza in text.split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace():
                fields[name] = f"{fields.get(name, '')} {line.strip()}"
                continue
            name, _, value = line.partition(":")
            name = name.lower()
            fields[name] = value.strip()
        if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        if "deb" in fields.get("types", "").split():
            yield from fields.get("suites", "").split()
