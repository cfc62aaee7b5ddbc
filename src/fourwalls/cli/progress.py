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


_PAUSE_S = 2.0


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
    last_step, last_time = "", began

    def report(told: Progress) -> None:
        nonlocal last_step, last_time
        now = time.monotonic()
        # Within a step a line a while is enough; a log is read by people, too.
        if told.step == last_step and told.fraction is not None and now - last_time < _PAUSE_S:
            return
        last_step, last_time = told.step, now
        line = output.printable(told.detail).splitlines()[0] if told.detail else told.step
        output.words(f"[{now - began:5.1f} s] {title}: {line}")

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
