"""``fourwalls template``: one file a verb."""

from __future__ import annotations

from collections.abc import Mapping

import click

from fourwalls.cli.verbs import LazyGroup

VERBS: Mapping[str, tuple[str, str]] = {
    "build": ("fourwalls.cli.template.build:build", "Build a template from a recipe."),
    "list": ("fourwalls.cli.template.list:list_", "List the templates stored here."),
    "show": ("fourwalls.cli.template.show:show", "Show all that is known of a template."),
    "rm": ("fourwalls.cli.template.rm:rm", "Remove templates."),
    "import": ("fourwalls.cli.template.import_:import_", "Import an image, archive or directory."),
}


class TemplateVerbs(LazyGroup):
    """All verbs of ``fourwalls template``."""

    table = VERBS


@click.group(cls=TemplateVerbs)
def template() -> None:
    """Build, list, show, remove, import templates.

    A template is the root filesystem that sandboxes start from. It has a name, may have a tag
    (NAME:TAG), and never changes: building again makes a new one and moves the name.
    """
