"""``fourwalls template rm``."""

from __future__ import annotations

import click

from fourwalls.cli import complete, output


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True,
                shell_complete=complete.templates)  # fmt: skip
def rm(names: tuple[str, ...]) -> None:
    """Remove each NAME (a name, NAME:TAG or a digest).

    A template goes with the last name that points to it. Sandboxes that run from it go on.
    """
    from fourwalls.images.store import TemplateStore
    from fourwalls.linux.places import Places

    store = TemplateStore(Places.from_environment())
    for name in names:
        manifest = store.remove(name)
        if manifest is None:
            output.words(f"removed the name {name}; other names still point to its template")
        else:
            output.words(f"removed {name} ({manifest.digest})")
