"""``fourwalls template show``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from fourwalls.cli import complete, output

if TYPE_CHECKING:
    from fourwalls.images.manifest import Manifest


@click.command()
@click.argument("name", shell_complete=complete.templates)
@click.option("--verify", is_flag=True, help="Also compare every byte of the image.")
@output.json_option
def show(name: str, verify: bool, as_json: bool) -> None:
    """Show all that is known of the template NAME (a name, NAME:TAG or a digest)."""
    from fourwalls.images.store import TemplateStore
    from fourwalls.linux.places import Places

    store = TemplateStore(Places.from_environment())
    manifest = store.get(name)
    if verify:
        store.verify(manifest)
        output.words("The image is what its manifest says.")
    if as_json:
        import msgspec

        document = msgspec.to_builtins(manifest)
        output.data_json({**document, "image": str(store.image(manifest))})
        return
    _show(manifest, str(store.image(manifest)))


def _show(manifest: Manifest, image: str) -> None:
    source = manifest.source
    rows = {
        "name": manifest.name,
        "digest": manifest.digest,
        "image": f"{image} ({manifest.size_bytes / 1024**2:.0f} MiB)",
        "made": f"{manifest.created_at} for {manifest.architecture}",
        "from": f"{source.kind} {source.reference}",
        "user": manifest.user,
        "workdir": manifest.workdir or "(the user's home)",
        "start": shlex.join(manifest.start_command) or "-",
        "ready": shlex.join(manifest.ready_command) or "-",
    }
    for title, value in rows.items():
        output.data(f"{title + ':':<9} {output.printable(value)}")
    for key, value in sorted(manifest.env.items()):
        output.data(f"{'env:':<9} {output.printable(f'{key}={value}')}")
    for note in source.notes:
        output.data(f"{'note:':<9} {output.printable(note)}")
