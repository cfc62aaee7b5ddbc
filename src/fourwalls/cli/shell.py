"""``fourwalls shell``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import click

from fourwalls.cli import output
from fourwalls.cli.options import SandboxOptions, create_request, sandbox_options

if TYPE_CHECKING:
    from fourwalls.model.sandbox import CreateRequest


@click.command()
@sandbox_options
@click.option(
    "--timeout",
    type=float,
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="End the sandbox after so long.",
)
@click.option(
    "-e",
    "--env",
    "envs",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Set an environment variable, or pass on one of this process.",
)
@click.option("-u", "--user", help="Whose shell.  [default: the template's user]")
@click.option("-w", "--cwd", metavar="DIR", help="Start in this directory.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.pass_context
def shell(
    ctx: click.Context,
    timeout: float,
    envs: tuple[str, ...],
    user: str | None,
    cwd: str | None,
    quiet: bool,
    **sandbox: Unpack[SandboxOptions],
) -> None:  # fmt: skip
    """Open a terminal in a throw-away sandbox.

    The sandbox is gone when the shell ends, and the exit code is the shell's. When nothing answers
    any more, '~.' at the beginning of a line ends it.
    """
    from fourwalls.cli.environment import parse_environment
    from fourwalls.cli.loop import run as run_loop
    from fourwalls.cli.session import run_session

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("shell needs a terminal; use 'fourwalls run' without one", ctx)
    request: CreateRequest = create_request(sandbox, lease=timeout, envs=parse_environment(envs))
    if not quiet:
        output.words("starting a sandbox …")
    ctx.exit(run_loop(run_session(request, user=user, cwd=cwd, quiet=quiet)))
