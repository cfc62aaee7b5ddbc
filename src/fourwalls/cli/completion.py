"""``fourwalls completion``."""

from __future__ import annotations

import click

from fourwalls.cli import output

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  fourwalls completion bash >/etc/bash_completion.d/fourwalls
    zsh:   fourwalls completion zsh >"${fpath[1]}/_fourwalls"
    fish:  fourwalls completion fish >~/.config/fish/completions/fourwalls.fish

    It completes verbs, options, boundaries, sizes, the templates stored here and the sandboxes
    that run now.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(ctx.find_root().command, {}, "fourwalls", "_FOURWALLS_COMPLETE")
    output.data(made.source())
