"""The command line: one file a verb. Data goes to standard output, words to standard error."""

from __future__ import annotations


def main() -> int:
    """Entry point of ``fourwalls``: run the verb in ``sys.argv`` and give back the exit code."""
    import sys

    from fourwalls.cli.entry import run_command_line

    return run_command_line(sys.argv[1:])
