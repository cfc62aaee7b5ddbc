"""The command lines, as whole values."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from fourwalls.images import skopeo
from fourwalls.images.accounts import account_lines
from fourwalls.images.debian import build_environment, mmdebstrap_argv
from fourwalls.images.erofs import mkfs_argv
from fourwalls.images.recipe import Recipe, User
from fourwalls.images.settle import fixed_shadow
from fourwalls.model.errors import InvalidArgumentError


def test_mmdebstrap() -> None:
    recipe = Recipe(
        release="trixie", packages=["sudo", "bash"], exclude=["/x/*"], run=["echo 'a b' > /c"]
    )
    assert mmdebstrap_argv(recipe, Path("/w/tree"), ["deb http://m trixie main"]) == [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "mmdebstrap",
        "--mode=root",
        "--format=directory",
        "--variant=minbase",
        "--include=bash,sudo",
        "--aptopt=APT::Install-Recommends false",
        "--aptopt=Acquire::Retries 3",
        "--aptopt=Acquire::Languages none",
        "--dpkgopt=path-exclude=/x/*",
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        "--customize-hook=chroot \"$1\" /bin/sh -euc 'echo '\"'\"'a b'\"'\"' > /c'",
        "trixie",
        "/w/tree",
        "deb http://m trixie main",
    ]


def test_the_build_sees_proxies_and_no_secrets() -> None:
    seen = build_environment({"https_proxy": "p", "NO_PROXY": "n", "TOKEN": "t"}, Path("/s"))
    assert seen["https_proxy"] == "p"
    assert seen["NO_PROXY"] == "n"
    assert "TOKEN" not in seen
    assert seen["TMPDIR"] == "/s"


def test_mkfs() -> None:
    identity = uuid.UUID(int=1)
    assert mkfs_argv(Path("/t"), Path("/i"), identity=identity) == [
        "mkfs.erofs",
        "--quiet",
        "--preserve-mtime",
        f"-U{identity}",
        "/i",
        "/t",
    ]


@pytest.mark.parametrize("insecure", [False, True])
def test_skopeo(insecure: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skopeo, "_POLICIES", (Path("/"),))
    argv = skopeo.skopeo_argv(
        "docker://r/x", Path("/l"), architecture="amd64", insecure=insecure, largest_file=9
    )
    assert argv == [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "prlimit",
        "--fsize=9",
        "skopeo",
        "--override-arch=amd64",
        "--override-os=linux",
        "copy",
        "--quiet",
        *(["--src-tls-verify=false"] if insecure else []),
        "docker://r/x",
        "oci:/l:image",
    ]


def test_references() -> None:
    assert skopeo.registry_source("debian:13") == "docker://debian:13"
    assert skopeo.registry_source("docker://r:5000/a/b@sha256:0") == "docker://r:5000/a/b@sha256:0"
    for bad in ("", "--help", "docker://-x", "a b", "a\n", "docker://$(x)"):
        with pytest.raises(InvalidArgumentError):
            skopeo.registry_source(bad)


def test_accounts() -> None:
    assert account_lines(User(name="user", uid=1000, sudo=True)) == {
        "passwd": "user:x:1000:1000::/home/user:/bin/bash",
        "group": "user:x:1000:",
        "shadow": "user:*:1:0:99999:7:::",
        "gshadow": "user:!::",
    }


def test_shadow_says_nothing_about_the_day() -> None:
    assert fixed_shadow("root:*:20333:0:99999:7:::\na:!:20333::::::\n") == (
        "root:*:1:0:99999:7:::\na:!:1::::::\n"
    )
