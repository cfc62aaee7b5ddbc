"""Users in a root filesystem: lines for passwd, group and shadow, homes, sudo."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from fourwalls.images.recipe import User

_SHELL = "/bin/bash"


def account_lines(user: User) -> dict[str, str]:
    """For each file of ``/etc`` the line that makes ``user`` known. No password can match."""
    return {
        "passwd": f"{user.name}:x:{user.uid}:{user.uid}::/home/{user.name}:{_SHELL}",
        "group": f"{user.name}:x:{user.uid}:",
        "shadow": f"{user.name}:*:1:0:99999:7:::",
        "gshadow": f"{user.name}:!::",
    }


def add_user(tree: Path, user: User) -> None:
    """Make ``user`` in the root filesystem ``tree``, as useradd(8) would, the same each time."""
    for name, line in account_lines(user).items():
        path = tree / "etc" / name
        if path.exists():
            with path.open("a") as file:
                file.write(f"{line}\n")
    home = tree / "home" / user.name
    skeleton = tree / "etc" / "skel"
    if skeleton.is_dir():
        shutil.copytree(skeleton, home, symlinks=True)
    else:
        home.mkdir(parents=True)
    home.chmod(0o755)
    for directory, _, files in os.walk(home):
        for made in (directory, *(os.path.join(directory, file) for file in files)):
            os.chown(made, user.uid, user.uid, follow_symlinks=False)
    sudoers = tree / "etc" / "sudoers.d"
    if user.sudo and sudoers.is_dir():
        rule = sudoers / user.name
        rule.write_text(f"{user.name} ALL=(ALL:ALL) NOPASSWD: ALL\n")
        rule.chmod(0o440)
