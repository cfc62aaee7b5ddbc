"""``build_recipe``: from a recipe to a stored template.

``python -m fourwalls.images.build base`` does the same for those without the command line tool.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from fourwalls.images import accounts, debian, settle
from fourwalls.images.architecture import host_architecture
from fourwalls.images.digest import ALGORITHM, digest_of_file
from fourwalls.images.erofs import make_image
from fourwalls.images.manifest import Manifest, Settings, Source, settings_uuid
from fourwalls.images.mirror import PUBLIC, find_mirrors, source_lines
from fourwalls.images.names import TemplateName
from fourwalls.images.progress import Progress, Report, silent
from fourwalls.images.recipe import Recipe, load_recipe
from fourwalls.images.skeleton import add_skeleton
from fourwalls.images.store import TemplateStore
from fourwalls.images.workspace import workspace
from fourwalls.linux.flock import locked, try_lock
from fourwalls.linux.places import Places
from fourwalls.model.errors import FourwallsError, TemplateError


def build_recipe(
    places: Places,
    recipe: Recipe,
    name: TemplateName,
    *,
    reference: str = "",
    report: Report = silent,
) -> Manifest:
    """Build ``recipe`` anew and let ``name`` point to the result.

    While another process builds the same recipe, this one waits and takes the other's result.
    Needs root and about a minute. Raises :class:`TemplateError`; then nothing is left behind.
    """
    if os.geteuid() != 0:
        raise TemplateError("building a template needs root", remedy="run the command with sudo")
    places.building.mkdir(mode=0o700, parents=True, exist_ok=True)
    gate = places.building / f"recipe-{recipe.digest[:32]}.lock"
    waited = _is_taken(gate)
    if waited:
        report(Progress("wait", "another process builds this recipe; waiting for its result"))
    with locked(gate) as lock:
        store = TemplateStore(places)
        if waited and (done := _left_by_the_other(lock, store)):
            store.name(name, done.digest)
            report(Progress("done", f"{name} is the template just built elsewhere", 1.0))
            return done
        os.ftruncate(lock, 0)
        built = _build(places, recipe, name, reference or str(name), report)
        os.pwrite(lock, built.hex.encode(), 0)
        return built


def pack(
    places: Places,
    tree: Path,
    *,
    name: TemplateName,
    settings: Settings,
    source: Source,
    architecture: str,
    report: Report,
) -> Manifest:
    """Make an image of ``tree``, a directory in a workspace, and store it under ``name``."""
    add_skeleton(tree)
    report(Progress("image", "writing the EROFS image", 0.96))
    image = tree.parent / "image.erofs"
    make_image(tree, image, identity=settings_uuid(settings, architecture))
    report(Progress("digest", "computing its digest", 0.99))
    manifest = Manifest(
        name=str(name),
        digest=f"{ALGORITHM}:{digest_of_file(image)}",
        size_bytes=image.stat().st_size,
        created_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        architecture=architecture,
        settings=settings,
        source=source,
    )
    stored = TemplateStore(places).add(image, manifest, name)
    report(Progress("done", f"{name} is {stored.digest}", 1.0))
    return stored


def _build(
    places: Places, recipe: Recipe, name: TemplateName, reference: str, report: Report
) -> Manifest:
    with workspace(places) as work:
        tree = work / "tree"
        began = time.time()
        sources = source_lines(recipe.release, find_mirrors())
        debian.make_rootfs(recipe, tree, sources, report)
        report(Progress("settle", "users, times, and what must not stay", 0.95))
        for user in recipe.users:
            accounts.add_user(tree, user)
        settle.clean(tree, source_lines(recipe.release, PUBLIC))
        settle.settle_times(tree, began)
        return pack(
            places,
            tree,
            name=name,
            settings=recipe.settings,
            source=Source(kind="recipe", reference=reference, recipe_digest=recipe.digest),
            architecture=host_architecture(),
            report=report,
        )


def _is_taken(gate: Path) -> bool:
    with gate.open("a") as file:
        return not try_lock(file.fileno())


def _left_by_the_other(lock: int, store: TemplateStore) -> Manifest | None:
    """What the previous owner of the lock built: its digest, or nothing if it failed."""
    try:
        return store.get(os.pread(lock, 64, 0).decode("ascii"))
    except (FourwallsError, UnicodeDecodeError):
        return None


def main(arguments: list[str]) -> int:
    """Build each recipe named, telling the steps on standard error."""

    def tell(progress: Progress) -> None:
        sys.stderr.write(f"{progress.step}: {progress.detail}\n")

    try:
        for argument in arguments or ["base"]:
            name, recipe = load_recipe(argument)
            build_recipe(Places.from_environment(), recipe, name, reference=argument, report=tell)
    except FourwallsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
