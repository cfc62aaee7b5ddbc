"""Copying an image to a local OCI layout with skopeo(1)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fourwalls.model.errors import InvalidArgumentError, TemplateError

_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}")
_POLICIES = (Path("/etc/containers/policy.json"), Path("/root/.config/containers/policy.json"))
_TAG = "image"


def registry_source(reference: str) -> str:
    """``docker://…`` for a plain or a full reference; raises :class:`InvalidArgumentError`."""
    plain = reference.removeprefix("docker://")
    if not _REFERENCE.fullmatch(plain):
        raise InvalidArgumentError(
            f"{reference[:200]!a} is neither a file here nor an image reference like"
            " 'registry.example/team/name:tag'"
        )
    return f"docker://{plain}"


def skopeo_argv(
    source: str, layout: Path, *, architecture: str, insecure: bool, largest_file: int
) -> list[str]:
    """The command line. ``insecure`` allows HTTP and unknown certificates."""
    return [
        *("setpriv", "--pdeathsig", "KILL", "prlimit", f"--fsize={largest_file}"),
        "skopeo",
        # An administrator's signature policy counts; only where there is none, all are accepted.
        *([] if any(policy.exists() for policy in _POLICIES) else ["--insecure-policy"]),
        f"--override-arch={architecture}",
        "--override-os=linux",
        "copy",
        "--quiet",
        *(["--src-tls-verify=false"] if insecure else []),
        source,
        f"oci:{layout}:{_TAG}",
    ]


def copy_to_layout(
    source: str, layout: Path, *, architecture: str, insecure: bool, largest_file: int
) -> None:
    """Fill the new directory ``layout``. Raises :class:`TemplateError` with skopeo's words."""
    argv = skopeo_argv(
        source, layout, architecture=architecture, insecure=insecure, largest_file=largest_file
    )
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=_environment(os.environ, layout.parent),
            check=False,
        )
    except FileNotFoundError as error:
        raise TemplateError(
            f"{error.filename} is not installed", remedy="apt-get install util-linux skopeo"
        ) from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-1000:]
        raise TemplateError(f"skopeo could not copy {source}: {said}", remedy=_remedy(said))


def _environment(environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    return {**environment, "TMPDIR": str(scratch), "LC_ALL": "C.UTF-8"}


def _remedy(said: str) -> str:
    if "skopeo: No such file" in said or "failed to execute skopeo" in said:
        return "apt-get install skopeo"
    if "HTTP response to HTTPS client" in said or "tls: " in said or "x509" in said:
        return "if you trust this registry all the same, add --insecure"
    if "unauthorized" in said or "denied" in said:
        return "log in with `skopeo login`, or check the name"
    return "check the reference and the network"
