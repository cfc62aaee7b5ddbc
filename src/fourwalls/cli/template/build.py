"""``fourwalls template build``."""

from __future__ import annotations

import click

from fourwalls.cli import output
from fourwalls.cli.template.document import summary


@click.command()
@click.argument("recipe", default="base")
@click.option("--name", help="Name of the template, instead of the recipe's own.")
@click.option("-q", "--quiet", is_flag=True, help="Do not show progress.")
@output.json_option
def build(recipe: str, name: str | None, quiet: bool, as_json: bool) -> None:
    """Build a template from RECIPE and print its digest.

    RECIPE is the name of a recipe that comes with Fourwalls (base) or the path of a .toml file. It
    is trusted like a script that is run as root on this host.
    """
    from fourwalls.cli.progress import progress
    from fourwalls.images.build import build_recipe
    from fourwalls.images.names import TemplateName
    from fourwalls.images.recipe import load_recipe
    from fourwalls.linux.places import Places

    own_name, loaded = load_recipe(recipe)
    chosen = TemplateName.parse(name) if name else own_name
    with progress(f"template {chosen}", quiet=quiet) as report:
        manifest = build_recipe(
            Places.from_environment(), loaded, chosen, reference=recipe, report=report
        )
    output.data_json(summary(manifest)) if as_json else output.data(manifest.digest)
