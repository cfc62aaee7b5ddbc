"""``fourwalls demo``."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import click

from fourwalls.cli import output
from fourwalls.cli.exit_codes import MISSING, OUR_FAILURE

if TYPE_CHECKING:
    from fourwalls.cli.demo_trial import Attempt, Trial

_MARKS = {
    "refused": "[green]✓[/green]",
    "contained": "[cyan]○[/cyan]",
    "let_through": "[red bold]✗[/red bold]",
}


@click.command()
@output.json_option
@click.pass_context
def demo(ctx: click.Context, as_json: bool) -> None:
    """Run one untrusted program behind every boundary of this host.

    As root in its sandbox it computes something, then tries to get out and to use up the host. For
    each boundary the table shows what it returned, the kernel it saw, the time from asking for the
    sandbox to the program's first output, and what it was refused.

    The exit code is 0 when all was refused or contained, 1 when something was let through, 125
    when no boundary could run it.
    """
    from fourwalls.cli.loop import run as run_loop
    from fourwalls.host.root import require_root

    require_root()
    trials = run_loop(_all_trials(quiet=as_json))
    if as_json:
        output.data_json(_document(trials))
    else:
        _show(trials)
    if any(trial.let_through for trial in trials):
        ctx.exit(MISSING)
    if not any(trial.attempts for trial in trials):
        ctx.exit(OUR_FAILURE)


async def _all_trials(*, quiet: bool) -> list[Trial]:
    from fourwalls.cli.demo_trial import Trial, bait, run_trial
    from fourwalls.host.offers import offers
    from fourwalls.images.mounts import mounted
    from fourwalls.images.store import TemplateStore
    from fourwalls.linux.places import Places

    # What is done once a boot shall not count for the first sandbox.
    places = Places.from_environment()
    mounted(places, TemplateStore(places).get("base"))
    trials = []
    with bait() as given:
        for offer in offers().all:
            trial = Trial(offer.boundary, offer.wall)
            trials.append(trial)
            if offer.available:
                if not quiet:
                    output.words(f"behind {offer.boundary.value} …")
                await run_trial(trial, given)
            elif offer.in_this_version:
                trial.failure = "needs " + "; ".join(missing.what for missing in offer.missing)
            else:
                trial.failure = "not part of this version"
    return trials


def _show(trials: list[Trial]) -> None:
    ran = [trial for trial in trials if trial.attempts]
    table = output.table(
        ["boundary", "the wall", "result", "kernel it saw", "first\noutput", "held\nback"]
    )
    table.columns[4].justify = table.columns[5].justify = "right"
    for trial in trials:
        table.add_row(f"[bold]{trial.boundary.value}[/bold]", trial.wall, *_cells(trial))
    output.show(table)
    output.data("")
    for trial in trials:
        if not trial.attempts:
            output.data(f"{trial.boundary.value}: {output.printable(trial.failure)}")
    output.data(f"This host itself runs Linux {platform.release()}.")
    for trial in ran:
        if trial.failure:
            output.words(f"{trial.boundary.value}: {output.printable(trial.failure)}")
    if ran:
        _show_attempts(ran)


def _cells(trial: Trial) -> list[str]:
    if not trial.attempts:
        return ["[dim]-[/dim]"] * 4
    first = trial.first_output_ms
    held = len(trial.attempts) - len(trial.let_through)
    colour = "red" if trial.let_through else "green"
    return [
        f"{trial.result} primes" if trial.result is not None else "none",
        output.escape(trial.kernel),
        "-" if first is None else f"{first:.0f} ms",
        f"[{colour}]{held}/{len(trial.attempts)}[/{colour}]",
    ]


def _show_attempts(ran: list[Trial]) -> None:
    from fourwalls.cli.demo_trial import TITLES

    output.data("")
    table = output.table(["as root it tried to", *(trial.boundary.value for trial in ran)])
    answers = [{attempt.name: attempt for attempt in trial.attempts} for trial in ran]
    for name, title in TITLES.items():
        if any(name in known for known in answers):
            table.add_row(title, *(_cell(known.get(name)) for known in answers))
    output.show(table)
    output.data("")
    output.data("✓ refused   ○ happened, but only inside its own kernel   ✗ let through")


def _cell(attempt: Attempt | None) -> str:
    if attempt is None:
        return "-"
    return f"{_MARKS[attempt.verdict]} {output.escape(attempt.answer)}"


def _document(trials: list[Trial]) -> dict[str, Any]:
    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 1)

    return {
        "host_kernel": platform.release(),
        "boundaries": [
            {
                "boundary": trial.boundary.value,
                "wall": trial.wall,
                "ran": bool(trial.attempts),
                "failure": trial.failure or None,
                "kernel": trial.kernel or None,
                "result": trial.result,
                "start_ms": rounded(trial.start_ms),
                "first_output_ms": rounded(trial.first_output_ms),
                "refused": trial.refused,
                "attempts": [
                    {"name": a.name, "verdict": a.verdict, "answer": a.answer}
                    for a in trial.attempts
                ],
            }
            for trial in trials
        ],
    }
