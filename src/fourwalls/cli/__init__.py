"""The command line: one file a verb. Data goes to standard output, words to standard error."""

from __future__ import annotations


def main() -> int:
    """Entry point of ``fourwalls``: run the verb in ``sys.argv`` and give back the exit code."""
    import sys

    if sys.argv[1:] == ["version"]:
        # Programs ask for it to see that we are here: spare them the parser, 0.1 s.
        from fourwalls import __version__

        sys.stdout.write(f"fourwalls {__version__}\n")
        return 0
    from fourwalls.cli.entry import run_command_line

    return run_command_line(sys.argv[1:])
