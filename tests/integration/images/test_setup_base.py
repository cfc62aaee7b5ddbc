"""`fourwalls setup` builds the base template anew when this version would build another one."""

from __future__ import annotations

from pathlib import Path

from fourwalls.host.setup import look
from fourwalls.images.build import pack
from fourwalls.images.manifest import Settings, Source
from fourwalls.images.names import TemplateName
from fourwalls.images.recipe import load_recipe
from fourwalls.linux.places import Places


def store_base(places: Places, rootfs: Path, source: Source) -> None:
    pack(
        places,
        rootfs,
        name=TemplateName.parse("base"),
        settings=Settings(),
        source=source,
        architecture="amd64",
        report=lambda _: None,
    )


def test_no_base(own: Places) -> None:
    assert not look(own).has_base


def test_the_base_of_this_version(own: Places, rootfs: Path) -> None:
    digest = load_recipe("base")[1].digest
    store_base(own, rootfs, Source(kind="recipe", reference="base", recipe_digest=digest))
    assert look(own).has_base


def test_the_base_of_another_version(own: Places, rootfs: Path) -> None:
    store_base(own, rootfs, Source(kind="recipe", reference="base", recipe_digest="0" * 64))
    assert not look(own).has_base


def test_a_base_of_the_users_own_is_left_alone(own: Places, rootfs: Path) -> None:
    store_base(own, rootfs, Source(kind="directory", reference="/srv/rootfs"))
    assert look(own).has_base
