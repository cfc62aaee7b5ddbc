"""Recipes: what a template built from Debian packages consists of.

A recipe is trusted like a script run as root: its packages' maintainer scripts and its ``run``
lines are executed on the building host, in a chroot.
"""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated

import msgspec

from fourwalls.images.digest import digest_of_bytes
from fourwalls.images.manifest import Settings
from fourwalls.images.names import TemplateName
from fourwalls.model.errors import InvalidArgumentError, TemplateNotFoundError

_PACKAGE = r"^[a-z0-9][a-z0-9+.-]+$"
_RELEASE = r"^[a-z][a-z0-9-]*$"
_USER = r"^[a-z_][a-z0-9_-]{0,31}$"
_PATTERN = re.compile(r"/[A-Za-z0-9_.*/+-]+")
_LARGEST_ID = 65533

Package = Annotated[str, msgspec.Meta(pattern=_PACKAGE)]


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A user with a home below ``/home``; ``sudo``: root without a password."""

    name: Annotated[str, msgspec.Meta(pattern=_USER)]
    uid: Annotated[int, msgspec.Meta(ge=1000, le=_LARGEST_ID)]
    sudo: bool = False


# Raised when the same recipe gives another tree than before.
_BUILD_VERSION = 2


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``run`` lines are shell commands, run as root in the new system after the packages."""

    release: Annotated[str, msgspec.Meta(pattern=_RELEASE)]
    packages: list[Package]
    exclude: list[str] = []
    users: list[User] = []
    run: list[str] = []
    settings: Settings = Settings()

    @property
    def digest(self) -> str:
        """64 hex digits naming the recipe's meaning: comments and layout do not count."""
        return digest_of_bytes(msgspec.json.encode([_BUILD_VERSION, self], order="sorted"))


def parse_recipe(text: str, origin: str) -> Recipe:
    """Read a recipe in TOML; raises :class:`InvalidArgumentError` naming ``origin``."""
    try:
        recipe = msgspec.convert(tomllib.loads(text), Recipe)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidArgumentError(f"recipe {origin}: {error}") from error
    for pattern in recipe.exclude:
        if not _PATTERN.fullmatch(pattern):
            raise InvalidArgumentError(
                f"recipe {origin}: exclude {pattern!r}: an absolute path of plain characters and *"
            )
    ids = [user.uid for user in recipe.users]
    if len(set(ids)) != len(ids):
        raise InvalidArgumentError(f"recipe {origin}: two users have the same uid")
    known = {"root", *(user.name for user in recipe.users)}
    if recipe.settings.user not in known:
        raise InvalidArgumentError(
            f"recipe {origin}: settings.user is {recipe.settings.user!r}, the recipe makes only"
            f" {', '.join(sorted(known))}"
        )
    return recipe


def load_recipe(name_or_file: str) -> tuple[TemplateName, Recipe]:
    """A shipped recipe by name, or a ``.toml`` file by path; the template takes its name.

    Raises :class:`TemplateNotFoundError` or :class:`InvalidArgumentError`.
    """
    if "/" in name_or_file or name_or_file.endswith(".toml"):
        path = Path(name_or_file)
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(f"recipe {path} cannot be read: {error}") from error
        return TemplateName.parse(path.stem), parse_recipe(text, str(path))
    name = TemplateName.parse(name_or_file)
    shipped = resources.files("fourwalls.images") / "recipes" / f"{name.name}.toml"
    if not shipped.is_file():
        raise TemplateNotFoundError(
            f"no recipe {name.name!r} is shipped (shipped: {', '.join(shipped_recipes())})",
            remedy="name one of these, or the path of a recipe file ending in .toml",
        )
    return name, parse_recipe(shipped.read_text(), name.name)


def shipped_recipes() -> list[str]:
    """The names of the recipes that come with this package."""
    folder = resources.files("fourwalls.images") / "recipes"
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )
