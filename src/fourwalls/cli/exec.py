"""``fourwalls exec``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fourwalls.cli import complete, output
from fourwalls.cli.streams import is_piped

if TYPE_CHECKING:
    from fourwalls.cli.job import Job


@click.command("exec")
@click.argument("sandbox_id", metavar="ID", shell_complete=complete.sandboxes)
@click.argument(
    "command", metavar="-- COMMAND [ARGUMENTS]...", nargs=-1, required=True, type=click.UNPROCESSED
)
@click.option(
    "--timeout",
    type=float,
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Kill the command after so long (exit code 124).",
)
@click.option(
    "-e",
    "--env",
    "envs",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Set an environment variable, or pass on one of this process.",
)
@click.option("-u", "--user", help="Run as this user.  [default: the template's]")
@click.option("-w", "--cwd", metavar="DIR", help="Run in this directory.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@output.json_option
@click.pass_context
def exec_(
    ctx: click.Context, sandbox_id: str, command: tuple[str, ...], timeout: float,
    envs: tuple[str, ...], user: str | None, cwd: str | None, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Run a command in the sandbox ID, one that was kept ('fourwalls run --keep') or detached.

    Exit codes and --json are those of 'run'. Whoever else is connected to it is disconnected.
    """
    from fourwalls.cli.environment import parse_environment
    from fourwalls.cli.job import Job
    from fourwalls.cli.loop import run as run_loop
    from fourwalls.model.sandbox import check_timeout

    words = command[1:] if command[0] == "--" else command
    if not words:
        raise click.UsageError("no command stands behind --", ctx)
    job = Job(
        argv=[word.encode("utf-8", "surrogateescape") for word in words],
        user=user,
        cwd=cwd,
        envs=parse_environment(envs),
        timeout=check_timeout(timeout),
        stdin=sys.stdin.fileno() if is_piped() else None,
    )
    ctx.exit(run_loop(_execute(sandbox_id, job, as_json=as_json, quiet=quiet)))


async def _execute(sandbox_id: str, job: Job, *, as_json: bool, quiet: bool) -> int:
    from fourwalls.cli.throwaway import run_in
    from fourwalls.host.adopt import adopt
    from fourwalls.host.root import require_root
    from fourwalls.linux.places import Places

    require_root()
    live = await adopt(sandbox_id, Places.from_environment())
    try:
        return await run_in(live, job, start_ms=0.0, as_json=as_json, quiet=quiet)
    finally:
        live.detach()
