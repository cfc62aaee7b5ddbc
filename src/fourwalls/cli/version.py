"""``fourwalls version``."""

from __future__ import annotations

import click

from fourwalls import __version__
from fourwalls.cli import output


@click.command()
@output.json_option
def version(as_json: bool) -> None:
    """Print the version of Fourwalls."""
    if as_json:
        output.data_json({"version": __version__})
    else:
        output.data(f"fourwalls {__version__}")
