"""A directory tree as one EROFS image: stored uncompressed, the same bytes for the same tree."""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path

from fourwalls.images import superblock
from fourwalls.model.errors import TemplateError


def mkfs_argv(tree: Path, image: Path, *, identity: uuid.UUID) -> list[str]:
    """The command line. Modification times of the files are kept: byte code depends on them."""
    # Not -T: up to erofs-utils 1.7 it overrules --preserve-mtime.
    return ["mkfs.erofs", "--quiet", "--preserve-mtime", f"-U{identity}", str(image), str(tree)]


def make_image(tree: Path, image: Path, *, identity: uuid.UUID) -> None:
    """Pack ``tree`` into ``image``. Raises :class:`TemplateError`."""
    argv = mkfs_argv(tree, image, identity=identity)
    try:
        done = subprocess.run(
            ["setpriv", "--pdeathsig", "KILL", *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise TemplateError(
            f"{error.filename} is not installed", remedy="apt-get install erofs-utils util-linux"
        ) from error
    if done.returncode != 0 or not image.exists():
        said = (done.stderr + done.stdout).decode(errors="replace").strip()
        raise TemplateError(
            f"mkfs.erofs failed ({done.returncode}): {said[-2000:] or 'it said nothing'}",
            remedy="is erofs-utils installed and the disk not full?",
        )
    with image.open("r+b") as file:
        superblock.clear_build_time(file)
