"""A Debian root filesystem by mmdebstrap, in namespaces that end with it.

Everything it mounts, it mounts in its own mount namespace, and every process it starts lives in
its own pid namespace: when the builder dies, even by SIGKILL, the kernel takes both away.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fourwalls.images.progress import Progress, Report
from fourwalls.images.recipe import Recipe
from fourwalls.model.errors import TemplateError

# The words of mmdebstrap that begin a step, and how much of the time has passed by then.
_STEPS = {
    "running apt-get update": 0.05,
    "downloading packages with apt": 0.1,
    "extracting archives": 0.2,
    "installing essential packages": 0.25,
    "installing remaining packages": 0.4,
    "cleaning package lists": 0.95,
}
_KEPT_ENVIRONMENT = re.compile(r"(?i:https?_proxy|no_proxy|all_proxy)")
_LAST_LINES = 30


def mmdebstrap_argv(recipe: Recipe, tree: Path, sources: list[str]) -> list[str]:
    """The command line that fills ``tree``."""
    return [
        # The kernel kills unshare with the thread that started it, and its child with it.
        *("setpriv", "--pdeathsig", "KILL"),
        *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("mmdebstrap", "--mode=root", "--format=directory", "--variant=minbase"),
        f"--include={','.join(sorted(recipe.packages))}",
        "--aptopt=APT::Install-Recommends false",
        "--aptopt=Acquire::Retries 3",
        "--aptopt=Acquire::Languages none",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in recipe.exclude),
        # Licences stay even where documentation goes.
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        *(f"--customize-hook={_in_chroot(line)}" for line in recipe.run),
        recipe.release,
        str(tree),
        *sources,
    ]


def build_environment(environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """What mmdebstrap sees of ``environment``: the way out to the network, nothing private."""
    kept = {key: value for key, value in environment.items() if _KEPT_ENVIRONMENT.fullmatch(key)}
    return {
        **kept,
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(scratch),
        "HOME": str(scratch),
        "DEBIAN_FRONTEND": "noninteractive",
        # String hashes decide the order of sets, and byte code keeps that order.
        "PYTHONHASHSEED": "0",
    }


def make_rootfs(recipe: Recipe, tree: Path, sources: list[str], report: Report) -> None:
    """Fill the new directory ``tree``. Raises :class:`TemplateError` with what apt said."""
    scratch = tree.parent / "scratch"
    scratch.mkdir()
    argv = mmdebstrap_argv(recipe, tree, sources)
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=build_environment(os.environ, scratch),
            cwd=scratch,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise TemplateError(
            "setpriv is not installed", remedy="apt-get install util-linux"
        ) from error
    with process:
        try:
            assert process.stdout is not None
            said: list[str] = []
            for line in process.stdout:
                said = [*said[1 - _LAST_LINES :], line.rstrip()]
                _report_line(line, report)
        except BaseException:
            process.kill()  # unshare takes its child along
            raise
    if process.returncode != 0:
        raise TemplateError(_failure(process.returncode, said), remedy=_remedy("\n".join(said)))


def _report_line(line: str, report: Report) -> None:
    if not line.startswith("I: "):
        return
    words = line[3:].strip().rstrip(".")
    for beginning, fraction in _STEPS.items():
        if words.startswith(beginning):
            report(Progress("packages", words, fraction))


def _failure(status: int, said: list[str]) -> str:
    telling = [line for line in said if line.startswith("E:")] or said
    return f"mmdebstrap failed ({status}):\n" + "\n".join(telling[-8:])


def _remedy(said: str) -> str:
    if "mmdebstrap: No such file" in said or "failed to execute mmdebstrap" in said:
        return "apt-get install mmdebstrap"
    if "NO_PUBKEY" in said or "is not signed" in said:
        return "apt-get install debian-archive-keyring"
    # A full disk makes apt say that it failed to fetch, too.
    if "No space left" in said:
        return "free some space in the state directory (FOURWALLS_STATE)"
    if "Failed to fetch" in said or "Could not" in said:
        return "check the network, or name a mirror that can be reached in FOURWALLS_MIRROR"
    return "see the message above; what was begun is removed, run the build again"


def _in_chroot(line: str) -> str:
    return f'chroot "$1" /bin/sh -euc {shlex.quote(line)}'
