"""``fourwalls boundaries``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from fourwalls.cli import output

if TYPE_CHECKING:
    from fourwalls.host.offers import Offer, Offers


@click.command()
@output.json_option
def boundaries(as_json: bool) -> None:
    """Show what this host offers: every boundary, weakest first, and why not.

    'auto' takes the strongest boundary that runs at native speed here, never one below the floor
    (gvisor unless --min-boundary says otherwise). A boundary is never replaced by a weaker one.
    """
    from fourwalls.host.offers import offers

    found = offers()
    if as_json:
        output.data_json(_document(found))
        return
    table = output.table(["boundary", "wall", "on this host", "runtime"])
    for offer in found.all:
        versions = (offer.versions or {}).values()
        table.add_row(
            f"[bold]{offer.boundary.value}[/bold]",
            offer.wall,
            _state(offer),
            output.escape("\n".join(version.replace(" version", "") for version in versions)),
        )
    output.show(table)
    for offer in found.all:
        for missing in offer.missing:
            output.data(f"{offer.boundary.value} needs {missing.what}: {missing.remedy}")
    chosen = found.auto.value if found.auto else "nothing"
    output.data(f"auto takes {chosen} ({found.auto_reason})")


def _state(offer: Offer) -> str:
    if not offer.in_this_version:
        return "[dim]not part of this version[/dim]"
    if not offer.available:
        return "[red]no, see below[/red]"
    return "[green]yes[/green]" if offer.native_speed else "[yellow]yes, but slow[/yellow]"


def _document(found: Offers) -> dict[str, Any]:
    return {
        "boundaries": [
            {
                "name": offer.boundary.value,
                "strength": offer.boundary.strength,
                "wall": offer.wall,
                "in_this_version": offer.in_this_version,
                "available": offer.available,
                "missing": [dataclasses.asdict(missing) for missing in offer.missing],
                "notes": list(offer.notes),
                "native_speed": offer.native_speed if offer.in_this_version else None,
                "versions": dict(offer.versions or {}),
                "capabilities": (
                    dataclasses.asdict(offer.capabilities) if offer.capabilities else None
                ),
            }
            for offer in found.all
        ],
        "auto": {"boundary": found.auto.value if found.auto else None, "reason": found.auto_reason},
    }
