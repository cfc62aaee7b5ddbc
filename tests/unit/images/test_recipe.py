"""Recipes are read whole or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourwalls.images.recipe import User, load_recipe, parse_recipe, shipped_recipes
from fourwalls.model.errors import InvalidArgumentError, TemplateNotFoundError

_SMALL = 'release = "trixie"\npackages = ["bash"]\n'


def test_base_has_what_it_promises() -> None:
    name, recipe = load_recipe("base")
    assert str(name) == "base"
    assert recipe.release == "trixie"
    assert {"python3", "bash", "coreutils", "git", "curl", "ca-certificates"} <= set(
        recipe.packages
    )
    assert {"ca-certificates", "procps", "sudo", "nodejs"} <= set(recipe.packages)
    assert recipe.users == [User(name="user", uid=1000, sudo=True)]
    assert recipe.settings.user == "user"
    assert recipe.settings.env["LANG"] == "C.UTF-8"


def test_every_shipped_recipe_is_valid() -> None:
    for shipped in shipped_recipes():
        load_recipe(shipped)


def test_the_digest_names_the_meaning() -> None:
    same = "# a comment\npackages = [ 'bash' ]\nrelease = 'trixie'\n"
    assert parse_recipe(_SMALL, "a").digest == parse_recipe(same, "b").digest
    assert parse_recipe(_SMALL, "a").digest != parse_recipe(_SMALL + "run = ['x']\n", "a").digest


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("release = ", "Invalid value"),
        ('release = "trixie"', "packages"),
        (_SMALL + "surprise = 1", "surprise"),
        (_SMALL + '[settings]\nuser = "nobody"', "nobody"),
        (_SMALL + 'exclude = ["/a;rm -rf"]', "exclude"),
        (_SMALL + '[[users]]\nname = "a"\nuid = 0', "1000"),
        (_SMALL + '[[users]]\nname = "a:b"\nuid = 1000', "name"),
        ('release = "../x"\npackages = []', "release"),
        ('release = "trixie"\npackages = ["--include=x"]', "packages"),
        (
            _SMALL + "".join(f'[[users]]\nname = "{n}"\nuid = 1000\n' for n in "ab"),
            "same uid",
        ),
    ],
)
def test_bad_recipes_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(InvalidArgumentError, match=complaint):
        parse_recipe(text, "test")


def test_recipe_files(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(_SMALL)
    name, recipe = load_recipe(str(tmp_path / "mine.toml"))
    assert str(name) == "mine"
    assert recipe.packages == ["bash"]
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        load_recipe(str(tmp_path / "other.toml"))
    with pytest.raises(TemplateNotFoundError, match="shipped: base"):
        load_recipe("nosuch")
