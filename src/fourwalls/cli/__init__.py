"""The command line: one file a verb. Data goes to standard output, words to standard error."""

from __future__ import annotations


def main() -> int:
    """Entry point of ``fourwalls``: run the verb in ``sys.argv`` and give back the exit code."""
    import sys
    from contextlib import suppress

    _open_what_is_closed()
    try:
        if sys.argv[1:] in (["version"], ["--version"]):
            # Programs ask for it to see that we are here: spare them the parser, 0.1 s.
            from fourwalls import __version__

            with suppress(OSError):
                sys.stdout.write(f"fourwalls {__version__}\n")
                sys.stdout.flush()
                return 0
        from fourwalls.cli.entry import run_command_line

        return run_command_line(sys.argv[1:])
    except KeyboardInterrupt:
        # While modules were still being read; or once more, while we were already ending.
        sys.stderr.write("interrupted\n")
        return 130


def _open_what_is_closed() -> None:
    """Whoever starts us with a standard stream closed gets /dev/null there: never another file."""
    import os
    import sys

    for fd, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != fd:
                os.dup2(nowhere, fd)
                os.close(nowhere)
            os.set_inheritable(fd, True)
            setattr(sys, name, os.fdopen(fd, mode, closefd=False))
