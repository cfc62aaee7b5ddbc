"""Packages come from where the host's own packages come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourwalls.images.mirror import PUBLIC, Mirrors, find_mirrors, source_lines


@pytest.fixture
def apt(tmp_path: Path) -> Path:
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


def test_without_apt_the_public_mirror(apt: Path) -> None:
    assert find_mirrors({}, apt) == PUBLIC


def test_one_line_sources(apt: Path) -> None:
    (apt / "sources.list").write_text(
        "# deb http://commented.example/debian x main\n"
        "deb cdrom:[Debian] x main\n"
        "deb [arch=amd64] http://mirror.example/debian/ bookworm main\n"
        "deb http://mirror.example/debian-security bookworm-security main\n"
    )
    assert find_mirrors({}, apt) == Mirrors(
        "http://mirror.example/debian", "http://mirror.example/debian-security"
    )


def test_deb822_sources_and_other_vendors(apt: Path) -> None:
    (apt / "sources.list.d" / "a.sources").write_text(
        "Types: deb\nURIs: https://vendor.example/node\n"
    )
    (apt / "sources.list.d" / "debian.sources").write_text(
        "Types: deb\nURIs: https://mirror.example/debian\n"
    )
    assert find_mirrors({}, apt) == Mirrors("https://mirror.example/debian", PUBLIC.security)


def test_the_environment_overrides(apt: Path) -> None:
    environment = {"FOURWALLS_MIRROR": "http://near/x/", "FOURWALLS_SECURITY_MIRROR": "none"}
    mirrors = find_mirrors(environment, apt)
    assert mirrors == Mirrors("http://near/x", "")
    assert source_lines("trixie", mirrors) == [
        "deb http://near/x trixie main",
        "deb http://near/x trixie-updates main",
    ]


def test_lines_with_security() -> None:
    assert source_lines("trixie", PUBLIC)[2] == (
        "deb http://deb.debian.org/debian-security trixie-security main"
    )
