"""``fourwalls run``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from fourwalls.cli import output
from fourwalls.cli.options import SandboxOptions, create_request, sandbox_options
from fourwalls.cli.streams import is_piped
from fourwalls.model.errors import InvalidArgumentError
from fourwalls.model.script import LANGUAGES, inline_command, interpreter_of

if TYPE_CHECKING:
    from fourwalls.cli.job import InputFile, OutputFile, Script

_COMMAND = "fourwalls.command"
_STDIN_NAME = "stdin"


class _RunCommand(click.Command):
    """Keeps what stands behind ``--`` apart: that is a command, the rest is a script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            before = args[: args.index("--")]
            values, _, _ = self.make_parser(ctx).parse_args(list(before))
            if not isinstance(values.get("arguments"), tuple):
                ctx.meta[_COMMAND] = tuple(args[len(before) + 1 :])
                args = before
        return super().parse_args(ctx, args)


@click.command(
    cls=_RunCommand,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.argument(
    "arguments",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="[SCRIPT [ARGUMENTS]... | -- COMMAND [ARGUMENTS]...]",
)
@click.option("-c", "--code", help="Run this code.")
@click.option(
    "-l",
    "--language",
    type=click.Choice(list(LANGUAGES)),
    help="Of the code or script.  [default: by its name or '#!' line; python for -c]",
)
@sandbox_options
@click.option(
    "--timeout",
    type=float,
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Kill the program after so long (exit code 124).",
)
@click.option(
    "-e",
    "--env",
    "envs",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Set an environment variable, or pass on one of this process.",
)
@click.option(
    "-f",
    "--file",
    "inputs",
    multiple=True,
    metavar="SRC[:DST]",
    help="Copy a file or directory in before the start.",
)
@click.option(
    "-o",
    "--out",
    "outputs",
    multiple=True,
    metavar="PATH[:DST]",
    help="Copy a file or directory out at the end.",
)
@click.option("-u", "--user", help="Run as this user.  [default: the template's]")
@click.option("-w", "--cwd", metavar="DIR", help="Run in this directory.")
@click.option(
    "--keep",
    type=float,
    metavar="SECONDS",
    help="Let the sandbox live on so long, for 'fourwalls exec'.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@output.json_option
@click.pass_context
def run(
    ctx: click.Context,
    arguments: tuple[str, ...],
    code: str | None,
    language: str | None,
    timeout: float,
    envs: tuple[str, ...],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    user: str | None,
    cwd: str | None,
    keep: float | None,
    quiet: bool,
    as_json: bool,
    **sandbox: Unpack[SandboxOptions],
) -> None:  # fmt: skip
    """Run a script or a command in a throw-away sandbox.

    \b
    fourwalls run script.py ARGS...            by its suffix (.py .js .mjs .cjs .sh .bash) or '#!'
    fourwalls run -c 'print(1)'                python, or what --language says
    fourwalls run -- python3 -c 'print(1)'     a command, without a shell
    generate-code | fourwalls run              a script from standard input (also '-')

    Standard input goes to the program when it is a pipe or a file. The program sees a file system
    and a network of its own; the sandbox is gone when this returns.

    --file and --out take directories too. Relative paths in the sandbox start where the program
    does. Symlinks are never copied, and nothing is written outside of DST.

    \b
    Exit codes
      the program's own     128+N if signal N ended it
      2                     the command line was wrong
      124                   the time was over
      125                   Fourwalls itself failed: no such boundary or template, no start, ...
      126, 127              the command cannot be executed, was not found

    --json prints one object: stdout, stderr, exit_code, signal, cause, boundary, reason,
    sandbox_id, timings (milliseconds), files, notes; or error (code, message, remedy).
    """
    from fourwalls.cli.environment import parse_environment
    from fourwalls.cli.job import Job
    from fourwalls.cli.loop import run as run_loop
    from fourwalls.cli.throwaway import run_throwaway
    from fourwalls.model.sandbox import check_timeout

    seconds = check_timeout(timeout)
    command = ctx.meta.get(_COMMAND)
    script, argv, uses_stdin = _program(ctx, command, arguments, code, language)
    job = Job(
        argv=argv,
        script=script,
        user=user,
        cwd=cwd,
        envs=parse_environment(envs),
        timeout=seconds,
        stdin=sys.stdin.fileno() if is_piped() and not uses_stdin else None,
        inputs=tuple(_input(item) for item in inputs),
        outputs=tuple(_output(item) for item in outputs),
    )
    living = None if keep is None else check_timeout(keep)
    # Copying in and out takes time, too; the program's own is up to the agent.
    request = create_request(sandbox, lease=seconds + 600, detach=living is not None)
    ctx.exit(run_loop(run_throwaway(request, job, keep=living, as_json=as_json, quiet=quiet)))


def _program(
    ctx: click.Context,
    command: tuple[str, ...] | None,
    arguments: tuple[str, ...],
    code: str | None,
    language: str | None,
) -> tuple[Script | None, list[bytes], bool]:
    """The script to put in (if any), the arguments, and whether standard input is used up."""
    if command is not None:
        if code is not None or language is not None:
            raise click.UsageError("a command behind -- takes neither --code nor --language", ctx)
        if not command:
            raise click.UsageError("no command stands behind --", ctx)
        return None, _encoded(command), False
    if code is not None:
        return None, [*inline_command(code, language or "python"), *_encoded(arguments)], False
    if not arguments and not is_piped():
        raise click.UsageError("nothing to run: give a script, -c CODE, or -- COMMAND", ctx)
    if not arguments or arguments[0] == "-":
        return _script_from_stdin(ctx, language), _encoded(arguments[1:]), True
    return _script_from_file(arguments[0], language), _encoded(arguments[1:]), False


def _script_from_stdin(ctx: click.Context, language: str | None) -> Script:
    from fourwalls.cli.job import Script

    content = sys.stdin.buffer.read()
    if not content.strip():
        raise click.UsageError("the script on standard input is empty", ctx)
    chosen = language or (None if content.startswith(b"#!") else "python")
    suffix = LANGUAGES[chosen].suffix if chosen else ""
    name = f"{_STDIN_NAME}{suffix}"
    return Script(name, content, interpreter_of(name, content, chosen))


def _script_from_file(name: str, language: str | None) -> Script:
    from fourwalls.cli.job import Script

    path = Path(name)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InvalidArgumentError(
            f"no script {name!r} here",
            remedy=f"to run a command, put -- before it: fourwalls run -- {name}",
        ) from None
    except OSError as error:
        raise InvalidArgumentError(f"{name} cannot be read: {error.strerror}") from error
    return Script(path.name, content, interpreter_of(path.name, content, language))


def _input(item: str) -> InputFile:
    from fourwalls.cli.job import InputFile

    source, target = _pair(item)
    if target and not Path(source).exists() and Path(item).exists():
        source, target = item, None
    path = Path(source)
    if not path.exists():
        raise InvalidArgumentError(f"--file: {source} does not exist")
    return InputFile(path, target)


def _output(item: str) -> OutputFile:
    from fourwalls.cli.job import OutputFile

    source, target = _pair(item)
    destination = Path(target) if target else Path(source.rstrip("/").rpartition("/")[2])
    # Refused now and not when the program has run for an hour.
    if not destination.absolute().parent.is_dir():
        raise InvalidArgumentError(f"--out: the directory {destination.parent} does not exist")
    return OutputFile(source, destination)


def _pair(item: str) -> tuple[str, str | None]:
    first, colon, second = item.rpartition(":")
    if not colon:
        return item, None
    if not first or not second:
        raise InvalidArgumentError(f"{item!r} is not PATH or PATH:PATH")
    return first, second


def _encoded(words: tuple[str, ...]) -> list[bytes]:
    return [word.encode("utf-8", "surrogateescape") for word in words]
