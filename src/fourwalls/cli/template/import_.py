"""``fourwalls template import``."""

from __future__ import annotations

from pathlib import Path

import click

from fourwalls.cli import output
from fourwalls.cli.template.document import summary

_KINDS = ("auto", "oci", "tar", "directory")


@click.command("import")
@click.argument("source")
@click.option("--name", required=True, help="Name of the new template, NAME or NAME:TAG.")
@click.option(
    "--kind",
    type=click.Choice(_KINDS),
    default="auto",
    show_default=True,
    help="What SOURCE is; 'auto' looks at it.",
)
@click.option("--insecure", is_flag=True, help="Allow registries without TLS (oci).")
@click.option("--user", help="Default user of sandboxes (tar, directory).  [default: root]")
@click.option("--workdir", help="Where commands start (tar, directory).")
@click.option(
    "-e",
    "--env",
    "envs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Environment of sandboxes (tar, directory).",
)
@click.option("-q", "--quiet", is_flag=True, help="Do not show progress.")
@output.json_option
@click.pass_context
def import_(
    ctx: click.Context, source: str, name: str, kind: str, insecure: bool, user: str | None,
    workdir: str | None, envs: tuple[str, ...], quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Make a template of SOURCE and print its digest.

    SOURCE is an image of a registry (docker://debian:12 or debian:12, by skopeo), an OCI layout or
    an archive of one (PATH or PATH:TAG), a tar archive of a root filesystem (plain, gzip, xz,
    zstd), or a directory. What is unsafe to unpack is refused, and nothing is stored then.
    """
    from fourwalls.cli.environment import parse_environment
    from fourwalls.cli.progress import progress
    from fourwalls.host.import_kind import ImportKind, kind_of
    from fourwalls.images.importing import import_directory, import_oci, import_tar
    from fourwalls.images.manifest import Settings
    from fourwalls.images.names import TemplateName
    from fourwalls.linux.places import Places

    chosen = TemplateName.parse(name)
    places = Places.from_environment()
    found = kind_of(source) if kind == "auto" else ImportKind(kind)
    settings = Settings(env=parse_environment(envs), user=user or "root", workdir=workdir or "")
    if found is ImportKind.OCI and (user or workdir or envs):
        raise click.UsageError("an OCI image brings its own user, workdir and env", ctx)
    if found is not ImportKind.OCI and insecure:
        raise click.UsageError("--insecure is about registries only", ctx)
    with progress(f"template {chosen}", quiet=quiet) as report:
        match found:
            case ImportKind.OCI:
                manifest = import_oci(places, source, chosen, insecure=insecure, report=report)
            case ImportKind.TAR:
                manifest = import_tar(
                    places, Path(source), chosen, settings=settings, report=report
                )
            case ImportKind.DIRECTORY:
                manifest = import_directory(
                    places, Path(source), chosen, settings=settings, report=report
                )
    output.data_json(summary(manifest)) if as_json else output.data(manifest.digest)
