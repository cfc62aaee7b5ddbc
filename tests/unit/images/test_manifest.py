"""The manifest's form is fixed: what was written by one version is read by the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourwalls.images.manifest import Manifest, Settings, Source, decode, encode, settings_uuid
from fourwalls.model.errors import TemplateCorruptError

_GOLDEN = Path(__file__).with_name("golden") / "manifest.json"
_MANIFEST = Manifest(
    name="tools:v2",
    digest="blake2b:" + "0123456789abcdef" * 4,
    size_bytes=4096,
    created_at="2025-08-09T12:00:00Z",
    architecture="amd64",
    settings=Settings(
        env={"LANG": "C.UTF-8"},
        user="user",
        workdir="/srv",
        start_command=["serve", "--port", "80"],
        ready_command=["test", "-e", "/run/ready"],
    ),
    source=Source(
        kind="oci",
        reference="registry.example/tools:v2",
        manifest_digest="sha256:" + "ab" * 32,
        layers=["sha256:" + "cd" * 32],
        notes=["sockets were left out"],
    ),
)


def test_golden() -> None:
    assert encode(_MANIFEST) == _GOLDEN.read_bytes()
    assert decode(_GOLDEN.read_bytes(), _GOLDEN) == _MANIFEST


def test_identity_depends_on_every_setting_and_nothing_else() -> None:
    assert str(settings_uuid(Settings(), "amd64")) == "90e3e8d8-ff5f-f7cf-cc5e-21275571d314"
    seen = {
        settings_uuid(settings, architecture)
        for architecture in ("amd64", "arm64")
        for settings in (
            Settings(),
            Settings(env={"A": "1"}),
            Settings(user="user"),
            Settings(workdir="/srv"),
            Settings(start_command=["a"]),
            Settings(ready_command=["a"]),
        )
    }
    assert len(seen) == 12
    assert settings_uuid(Settings(env={"A": "1", "B": "2"}), "amd64") == settings_uuid(
        Settings(env={"B": "2", "A": "1"}), "amd64"
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"\xff",
        encode(_MANIFEST).replace(b'"version": 1', b'"version": 2'),
        encode(_MANIFEST).replace(b'"name"', b'"surprise": 1, "name"'),
    ],
)
def test_anything_else_is_corrupt(data: bytes) -> None:
    with pytest.raises(TemplateCorruptError, match=r"manifest\.json"):
        decode(data, Path("manifest.json"))
