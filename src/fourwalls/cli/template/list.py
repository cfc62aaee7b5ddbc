"""``fourwalls template list``."""

from __future__ import annotations

import click

from fourwalls.cli import output
from fourwalls.cli.template.document import stored_summary


@click.command("list")
@click.option("-q", "--quiet", is_flag=True, help="Only the names, one a line.")
@output.json_option
def list_(quiet: bool, as_json: bool) -> None:
    """List the templates stored here, newest first."""
    from fourwalls.images.store import TemplateStore
    from fourwalls.linux.places import Places

    found = TemplateStore(Places.from_environment()).list()
    if as_json:
        output.data_json([stored_summary(stored) for stored in found])
        return
    if quiet:
        for stored in found:
            for name in stored.names:
                output.data(str(name))
        return
    if not found:
        output.words("No templates are stored here: fourwalls template build base")
        return
    table = output.table(["name", "size", "made", "from", "digest"])
    for stored in found:
        manifest = stored.manifest
        table.add_row(
            ", ".join(map(str, stored.names)) or "[dim](no name)[/dim]",
            f"{manifest.size_bytes / 1024**2:.0f} MiB",
            manifest.created_at[:16].replace("T", " "),
            output.escape(f"{manifest.source.kind} {manifest.source.reference}"),
            manifest.hex[:12],
        )
    output.show(table)
