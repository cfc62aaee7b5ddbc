"""``fourwalls setup``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fourwalls.cli import output
from fourwalls.cli.exit_codes import MISSING, OUR_FAILURE

if TYPE_CHECKING:
    from fourwalls.linux.places import Places


@click.command()
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option("--check", is_flag=True, help="Only say what would be done; exit code 1 if anything.")
@click.pass_context
def setup(ctx: click.Context, yes: bool, check: bool) -> None:
    """Make this host ready: packages, kernel modules, the base template.

    On Debian 12 and 13 what is missing is installed with apt-get; on Debian 12 a source of
    backports is added for runsc alone. Elsewhere setup says what has to be installed. When all is
    there it returns at once. What setup cannot install is shown by 'fourwalls doctor'.
    """
    from fourwalls.host.setup import carry_out, look, make_plan
    from fourwalls.linux.places import Places

    places = Places.from_environment()
    plan = make_plan(look(places))
    if plan:
        output.words("To be done:")
        for line in plan.describe():
            output.words(f"  - {line}")
        if check:
            ctx.exit(MISSING)
        _confirm(ctx, yes)
        from fourwalls.cli.progress import progress

        with progress("setup") as report:
            carry_out(plan, places, report)
    _say_what_is_left(ctx, places)


def _confirm(ctx: click.Context, yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("nothing was changed: confirm with --yes", ctx)
    click.confirm("Go on?", default=True, abort=True, err=True)


def _say_what_is_left(ctx: click.Context, places: Places) -> None:
    """What cannot be installed: a kernel, root's rights, our own binaries."""
    from fourwalls.host.doctor import Status, examine

    left = [check for check in examine(places) if check.status is Status.MISSING]
    if not left:
        output.words("Everything is there.")
        return
    output.words("Still missing, and not for setup to install:")
    for check in left:
        output.words(f"  - {check.name}: {check.detail}\n    → {check.remedy}")
    ctx.exit(OUR_FAILURE)
