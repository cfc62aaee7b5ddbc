"""``fourwalls kill``."""

from __future__ import annotations

import click

from fourwalls.cli import complete, output


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, shell_complete=complete.sandboxes)
@click.option("--all", "everything", is_flag=True, help="End every sandbox of this host.")
@click.pass_context
def kill(ctx: click.Context, ids: tuple[str, ...], everything: bool) -> None:
    """End sandboxes, whoever made them, and wait until nothing of them is left."""
    from fourwalls.cli.loop import run as run_loop
    from fourwalls.host.listing import running_sandboxes
    from fourwalls.host.root import require_root
    from fourwalls.linux.places import Places

    require_root()
    places = Places.from_environment()
    if everything == bool(ids):
        raise click.UsageError("give either ids or --all", ctx)
    if everything:
        ids = tuple(info.sandbox_id for info in running_sandboxes(places))
    run_loop(_end_all(ids))


async def _end_all(ids: tuple[str, ...]) -> None:
    from fourwalls.host.end import end
    from fourwalls.linux.places import Places

    for sandbox_id in ids:
        await end(sandbox_id, Places.from_environment())
        output.words(f"ended {sandbox_id}")
