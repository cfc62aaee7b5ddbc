"""Long work shown on standard error: a bar on a terminal, a line a step elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fourwalls.cli import output

if TYPE_CHECKING:
    from fourwalls.images.progress import Progress


@contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[Callable[[Progress], None]]:
    """Give the block a callable to report to. Says nothing when ``quiet``."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar(title) as report:
            yield report
    else:
        yield _lines(title)


def _lines(title: str) -> Callable[[Progress], None]:
    began = time.monotonic()
    last = [""]

    def report(told: Progress) -> None:
        line = output.printable(told.detail).splitlines()[0] if told.detail else told.step
        if line != last[0]:
            last[0] = line
            output.words(f"[{time.monotonic() - began:5.1f} s] {title}: {line}")

    return report


@contextmanager
def _bar(title: str) -> Iterator[Callable[[Progress], None]]:
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    with Bar(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}", markup=False),
        console=output.console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=None, detail="")

        def report(told: Progress) -> None:
            if told.step == "note":
                bar.console.print(output.printable(told.detail), markup=False)
                return
            detail = output.printable(told.detail).replace("\n", " ")[:60]
            if told.fraction is None:
                bar.update(task, detail=detail)
            else:
                bar.update(task, total=1.0, completed=told.fraction, detail=detail)

        yield report
