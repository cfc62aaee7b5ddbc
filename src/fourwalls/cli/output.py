"""The only place that writes to the terminal: data to standard output, words to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# In a pipe there is no terminal to ask for its width.
_WIDTH_OF_A_PIPE = 100

_state = {"json_errors": False}


class OutputError(Exception):
    """Standard output takes no more: its disk is full, for one. Not for a reader who has left."""


@contextmanager
def writing() -> Iterator[None]:
    """Around whatever writes to standard output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.strerror or str(error)) from None


def flush() -> None:
    """Have everything written that was said so far."""
    with writing():
        sys.stdout.flush()


def data(text: str, *, newline: bool = True) -> None:
    """A result, for whoever reads our standard output."""
    with writing():
        click.echo(text, nl=newline)


def data_json(value: Any) -> None:
    """A result as one JSON document."""
    import json

    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        # A name of a file that is no text; as an escape it can be written all the same.
        text = json.dumps(value, indent=2, default=str)
    data(text)


def words(text: str) -> None:
    """Something said to the person at the terminal."""
    try:
        click.echo(text, err=True)
    except BrokenPipeError:
        raise
    except OSError:
        pass  # where errors are told nothing can be told


def errors_as_json() -> None:
    """From now on failures are told as JSON on standard output."""
    _state["json_errors"] = True


def failure(code: str, message: str, remedy: str | None) -> None:
    """Say that something went wrong, in the form the caller asked for."""
    if _state["json_errors"]:
        data_json({"error": error_document(code, message, remedy)})
        return
    # Messages quote what programs, images and sandboxes have said.
    message = printable(message)
    red = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    words(f"{click.style('error:', fg='red', bold=True) if red else 'error:'} {message}")
    if remedy:
        words(f"  remedy: {printable(remedy)}")


def error_document(code: str, message: str, remedy: str | None) -> dict[str, str | None]:
    """An error as every JSON answer has it."""
    return {"code": code, "message": message, "remedy": remedy}


def console(*, stderr: bool = False) -> Console:
    """A rich console: colours only on a terminal and without ``NO_COLOR``."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH_OF_A_PIPE
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def table(columns: Sequence[str], *, title: str | None = None) -> Table:
    """An empty table in the one style of this program."""
    from rich import box
    from rich.table import Table

    made = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def show(thing: Table) -> None:
    """Print a table, without the blanks rich fills its lines with."""
    screen = console()
    with writing(), screen.capture() as captured:
        screen.print(thing)
    for line in captured.get().splitlines():
        if line.strip():
            data(line.rstrip())


def json_option(function: Any) -> Any:
    """``--json`` for a verb; failures become JSON too."""

    def note(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
        if value:
            errors_as_json()
        return value

    return click.option(
        "--json", "as_json", is_flag=True, is_eager=True, callback=note,
        help="Print one JSON document on standard output, failures too.",
    )(function)  # fmt: skip


def escape(text: str) -> str:
    """``text`` as it is, where rich would read markup."""
    from rich.markup import escape as rich_escape

    return rich_escape(printable(text))


def printable(text: str) -> str:
    """``text`` without what a terminal would obey: control characters, escape sequences."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
