"""``fourwalls doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fourwalls.cli import output
from fourwalls.cli.exit_codes import MISSING

if TYPE_CHECKING:
    from fourwalls.host.clean import Cleaned
    from fourwalls.host.doctor import Check

_MARKS = {"ok": "[green]✓[/green]", "missing": "[red]✗[/red]", "note": "[yellow]·[/yellow]"}


@click.command()
@click.option("--clean", is_flag=True, help="Remove orphans, unmount templates nobody uses.")
@click.option("--self-test", is_flag=True, help="Also run a real sandbox behind each boundary.")
@output.json_option
@click.pass_context
def doctor(ctx: click.Context, clean: bool, self_test: bool, as_json: bool) -> None:
    """Say what is missing on this host, with the exact remedy for each.

    The exit code is 0 when nothing is missing and 1 otherwise. What is only worth knowing is
    marked with a dot and does not count.
    """
    from fourwalls.host.doctor import Status, examine
    from fourwalls.linux.places import Places

    places = Places.from_environment()
    cleaned: Cleaned | None = None
    if clean:
        from fourwalls.host.clean import clean as tidy
        from fourwalls.host.root import require_root

        require_root()
        cleaned = tidy(places)
    checks = examine(places)
    if self_test:
        from fourwalls.cli.self_test import self_test as try_out

        checks += try_out()
    missing = [check for check in checks if check.status is Status.MISSING]
    if as_json:
        output.data_json(_document(checks, cleaned, ready=not missing))
    else:
        _show(checks, cleaned)
        output.words(_verdict(len(missing)))
    if missing:
        ctx.exit(MISSING)


def _show(checks: list[Check], cleaned: Cleaned | None) -> None:
    table = output.table(["", "check", "found"])
    for check in checks:
        found = output.escape(check.detail)
        if check.remedy and check.status.value != "ok":
            found += f"\n[bold]→ {output.escape(check.remedy)}[/bold]"
        table.add_row(_MARKS[check.status.value], check.name, found)
    output.show(table)
    if cleaned is not None:
        for line in _cleaned_lines(cleaned):
            output.data(line)


def _verdict(missing: int) -> str:
    if not missing:
        return "This host is ready."
    things = "One thing is" if missing == 1 else f"{missing} things are"
    return f"{things} missing. 'fourwalls setup' installs what can be installed."


def _cleaned_lines(cleaned: Cleaned) -> list[str]:
    reaped = cleaned.reaped
    lines = [f"removed sandbox {name}" for name in reaped.sandboxes]
    lines += [f"released id slot {name}" for name in reaped.slots]
    lines += [f"removed {path}" for path in reaped.files]
    lines += [f"unmounted template {digest[:12]}" for digest in cleaned.unmounted]
    lines += [f"could not remove {what}" for what in reaped.stuck]
    return lines or ["nothing to clean"]


def _document(checks: list[Check], cleaned: Cleaned | None, *, ready: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "ready": ready,
        "checks": [
            {
                "name": check.name,
                "status": check.status.value,
                "detail": check.detail,
                "remedy": check.remedy or None,
            }
            for check in checks
        ],
    }
    if cleaned is not None:
        document["cleaned"] = {
            "sandboxes": cleaned.reaped.sandboxes,
            "slots": cleaned.reaped.slots,
            "files": cleaned.reaped.files,
            "stuck": cleaned.reaped.stuck,
            "unmounted": list(cleaned.unmounted),
        }
    return document
