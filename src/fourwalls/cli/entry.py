"""From the arguments to an exit code: every way a command can end is decided here."""

from __future__ import annotations

import errno
import os
import sys

import click

from fourwalls.cli import output
from fourwalls.cli.exit_codes import INTERRUPTED, OUR_FAILURE, READER_LEFT, USAGE, exit_code_of
from fourwalls.cli.verbs import Verbs
from fourwalls.model.errors import FourwallsError

_HELP = """Run code nobody has vouched for, behind a boundary you choose.

Data goes to standard output, words to standard error. 'run', 'exec' and 'shell' pass on the exit
code of the program in the sandbox; 125 means that Fourwalls itself failed, 124 that the time was
over, 126 and 127 that the program could not be run or found, 2 that the command line was wrong.

FOURWALLS_STATE (/var/lib/fourwalls) keeps the templates, FOURWALLS_RUN (/run/fourwalls) the
sandboxes. FOURWALLS_DEBUG=1 shows where an internal error came from.
"""

# What a host may answer to anything we do, wherever it comes from.
_ROOT = "run as root (sudo fourwalls …)"
_ROOM = "make room there, or let FOURWALLS_STATE and FOURWALLS_RUN name other directories"
_WRITABLE = "let FOURWALLS_STATE and FOURWALLS_RUN name directories that can be written"
_REMEDIES = {
    errno.EACCES: _ROOT,
    errno.EPERM: _ROOT,
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EROFS: _WRITABLE,
    errno.ENOTDIR: _WRITABLE,
}

root = Verbs(
    "fourwalls",
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)


def run_command_line(arguments: list[str]) -> int:
    """Run one verb and give back the exit code; nothing is raised."""
    if "_FOURWALLS_COMPLETE" in os.environ:
        root.main(arguments, prog_name="fourwalls")  # a shell asks what could come next
    try:
        return _run(["version"] if arguments == ["--version"] else arguments)
    except BrokenPipeError:
        # Whoever read our output has left. Nothing can be said, and nothing needs to be.
        _point_nowhere(sys.stdout.fileno())
        return READER_LEFT
    except output.OutputError as error:
        _point_nowhere(sys.stdout.fileno())
        output.words(f"error: the output cannot be written: {error}")
        return OUR_FAILURE
    finally:
        # What could not be written would be tried again at the end, and change the exit code.
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                _point_nowhere(stream.fileno())


def _run(arguments: list[str]) -> int:
    try:
        with root.make_context("fourwalls", list(arguments)) as ctx:
            ended = root.invoke(ctx)
        output.flush()
        return ended if isinstance(ended, int) else 0
    except click.exceptions.Exit as asked:
        output.flush()
        return asked.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        output.words(error.format_message())
        return USAGE
    except click.ClickException as error:
        return _refuse_usage(error, arguments)
    except FourwallsError as error:
        output.failure(error.code, error.message, error.remedy)
        return exit_code_of(error)
    except (click.Abort, KeyboardInterrupt):
        output.words("interrupted")
        return INTERRUPTED
    except (BrokenPipeError, output.OutputError):
        raise
    except Exception as error:
        if isinstance(error, OSError):
            output.flush()  # it may have been our output that failed
        if os.environ.get("FOURWALLS_DEBUG"):
            import traceback

            output.words(traceback.format_exc())
        if isinstance(error, OSError) and error.errno in _REMEDIES:
            place = f"{os.fsdecode(error.filename)}: " if error.filename else ""
            output.failure("host_error", f"{place}{error.strerror}", _REMEDIES[error.errno])
            return OUR_FAILURE
        message = f"internal error: {type(error).__name__}: {error}"
        output.failure("internal", message, "set FOURWALLS_DEBUG=1 to see where it comes from")
        return OUR_FAILURE


def _refuse_usage(error: click.ClickException, arguments: list[str]) -> int:
    # The parser may have stopped before it came to --json.
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" in ours:
        output.errors_as_json()
    remedy = None
    if isinstance(error, click.UsageError) and error.ctx is not None:
        remedy = f"{error.ctx.command_path} --help"
    output.failure("usage", error.format_message(), remedy)
    return USAGE


def _point_nowhere(fd: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, fd)
    os.close(nowhere)
