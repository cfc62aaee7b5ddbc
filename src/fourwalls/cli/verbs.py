"""The table of verbs, and the group that imports a verb only when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

# Verb: the module that holds it (its function has the name of the verb), and one line of help,
# here so that the list of verbs can be shown without importing any.
VERBS: Mapping[str, tuple[str, str]] = {
    "run": ("fourwalls.cli.run:run", "Run a script or a command in a throw-away sandbox."),
    "shell": ("fourwalls.cli.shell:shell", "Open a terminal in a throw-away sandbox."),
    "demo": ("fourwalls.cli.demo:demo", "Run one untrusted program behind every boundary."),
    "list": ("fourwalls.cli.list:list_", "List the sandboxes of this host."),
    "exec": ("fourwalls.cli.exec:exec_", "Run a command in a sandbox that is there already."),
    "kill": ("fourwalls.cli.kill:kill", "End sandboxes."),
    "template": ("fourwalls.cli.template:template", "Build, list, show, remove, import templates."),
    "boundaries": ("fourwalls.cli.boundaries:boundaries", "What this host offers, and why not."),
    "doctor": ("fourwalls.cli.doctor:doctor", "What is missing on this host, and the remedy."),
    "setup": ("fourwalls.cli.setup:setup", "Install what is missing, build the base template."),
    "completion": ("fourwalls.cli.completion:completion", "Print the completion of a shell."),
    "version": ("fourwalls.cli.version:version", "Print the version."),
}


class LazyGroup(click.Group):
    """A group over such a table. Listing it costs nothing; using a verb imports that verb."""

    table: Mapping[str, tuple[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        module, _, name = self.table[cmd_name][0].partition(":")
        found: click.Command = getattr(importlib.import_module(module), name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.table and not args[0].startswith("-"):
            ctx.fail(f"unknown command {args[0]!r}: one of {', '.join(self.table)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, help_) for verb, (_, help_) in self.table.items()])


class Verbs(LazyGroup):
    """All verbs of ``fourwalls``."""

    table = VERBS
