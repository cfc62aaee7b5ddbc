"""What shells complete: the templates stored here, the sandboxes that run now."""

from __future__ import annotations

import click


def templates(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of templates. A shell that completes wants no errors."""
    from fourwalls.images.store import TemplateStore
    from fourwalls.linux.places import Places

    try:
        found = TemplateStore(Places.from_environment()).list()
    except OSError:
        return []
    names = [str(name) for stored in found for name in stored.names]
    return [name for name in names if name.startswith(incomplete)]


def sandboxes(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Ids of running sandboxes."""
    from fourwalls.host.listing import running_sandboxes
    from fourwalls.linux.places import Places

    try:
        found = running_sandboxes(Places.from_environment())
    except OSError:
        return []
    return [info.sandbox_id for info in found if info.sandbox_id.startswith(incomplete)]
