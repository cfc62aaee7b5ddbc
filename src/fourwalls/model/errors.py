"""The tree of everything that can go wrong, with one stable code for each class.

::

    FourwallsError                       internal
    ├── InvalidArgumentError            invalid_argument
    ├── NotFoundError                   not_found
    │   ├── SandboxNotFoundError        sandbox_not_found
    │   ├── TemplateNotFoundError       template_not_found
    │   ├── ProcessNotFoundError        process_not_found
    │   └── PathNotFoundError           file_not_found
    ├── FileError                       file_error
    │   ├── PathExistsError             file_exists
    │   ├── PathNotADirectoryError      not_a_directory
    │   ├── PathIsADirectoryError       is_a_directory
    │   ├── PermissionDeniedError       permission_denied
    │   └── DiskFullError               disk_full
    ├── TemplateError                   template_error
    │   ├── TemplateCorruptError        template_corrupt
    │   └── ImportRefusedError          import_refused
    ├── BoundaryUnavailableError        boundary_unavailable
    ├── CapabilityError                 capability_missing
    ├── SandboxError                    sandbox_error
    │   ├── SandboxStartError           sandbox_start_failed
    │   ├── SandboxGoneError            sandbox_gone
    │   └── AgentProtocolError          agent_protocol
    ├── LimitError                      limit
    └── CommandError                    command_error
        ├── CommandStartError           command_start_failed
        ├── CommandExitError            command_exit
        └── CommandTimeoutError         timeout

A message says what was wrong, what is allowed and what to do about it. Nothing but the code, the
message and plain data ever crosses a wire: no class names, no tracebacks.
"""

from __future__ import annotations

from typing import ClassVar


class FourwallsError(Exception):
    """Base of every error of this package. ``code`` is stable; ``remedy`` says what to do."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  remedy: {self.remedy}" if self.remedy else self.message


class InvalidArgumentError(FourwallsError, ValueError):
    """A value given by the caller is not allowed; the message says which are."""

    code = "invalid_argument"


class NotFoundError(FourwallsError):
    """What was named does not exist."""

    code = "not_found"


class SandboxNotFoundError(NotFoundError):
    """No sandbox with this id lives on this host."""

    code = "sandbox_not_found"


class TemplateNotFoundError(NotFoundError):
    """No template with this name or digest is stored here."""

    code = "template_not_found"


class ProcessNotFoundError(NotFoundError):
    """The sandbox knows no process with this pid or tag."""

    code = "process_not_found"


class PathNotFoundError(NotFoundError):
    """The path does not exist inside the sandbox."""

    code = "file_not_found"


class FileError(FourwallsError):
    """A file operation inside the sandbox failed."""

    code = "file_error"


class PathExistsError(FileError):
    """The path exists already inside the sandbox."""

    code = "file_exists"


class PathNotADirectoryError(FileError):
    """A directory was needed."""

    code = "not_a_directory"


class PathIsADirectoryError(FileError):
    """A file was needed, the path is a directory."""

    code = "is_a_directory"


class PermissionDeniedError(FileError):
    """The sandbox's own kernel refused the access."""

    code = "permission_denied"


class DiskFullError(FileError):
    """The sandbox's disk quota is used up. Files can still be removed."""

    code = "disk_full"


class TemplateError(FourwallsError):
    """A template could not be built, imported or removed."""

    code = "template_error"


class TemplateCorruptError(TemplateError):
    """The stored image does not match its manifest."""

    code = "template_corrupt"


class ImportRefusedError(TemplateError):
    """An imported image contains something that is not safe to unpack."""

    code = "import_refused"


class BoundaryUnavailableError(FourwallsError):
    """The boundary asked for cannot be had on this host. Never answered with a weaker one."""

    code = "boundary_unavailable"


class CapabilityError(FourwallsError):
    """This boundary cannot do that; the message names one that can."""

    code = "capability_missing"


class SandboxError(FourwallsError):
    """Something went wrong with the sandbox as a whole."""

    code = "sandbox_error"


class SandboxStartError(SandboxError):
    """The sandbox could not be started. ``stage`` says at which step."""

    code = "sandbox_start_failed"

    def __init__(self, message: str, *, stage: str = "", remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.stage = stage


class SandboxGoneError(SandboxError):
    """The sandbox ended. ``cause`` is a value of :class:`fourwalls.model.cause.Cause`."""

    code = "sandbox_gone"

    def __init__(self, message: str, *, cause: str = "unknown", remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.cause = cause


class AgentProtocolError(SandboxError):
    """The guest agent broke the protocol. The sandbox is not trusted any more and is ended."""

    code = "agent_protocol"


class LimitError(FourwallsError):
    """A limit of the host or of the sandbox was reached (processes, sandboxes, sizes)."""

    code = "limit"


class CommandError(FourwallsError):
    """A command in a sandbox did not end well."""

    code = "command_error"


class CommandStartError(CommandError):
    """The command never ran. ``stage`` is user, cwd, fork, exec or pty; ``errno`` the reason."""

    code = "command_start_failed"

    def __init__(
        self, message: str, *, stage: str = "", errno: int = 0, remedy: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.stage = stage
        self.errno = errno


class CommandExitError(CommandError):
    """The command ran and ended with a non-zero exit code or by a signal."""

    code = "command_exit"

    def __init__(
        self,
        message: str,
        *,
        exit_code: int,
        stdout: str = "",
        stderr: str = "",
        signal: int | None = None,
        cause: str = "exited",
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr
        self.signal = signal
        self.cause = cause


class CommandTimeoutError(CommandError, TimeoutError):
    """The command was killed, with all it had started, because its time was over.

    ``stdout`` and ``stderr`` hold what it had printed until then.
    """

    code = "timeout"

    def __init__(
        self, message: str, *, stdout: str = "", stderr: str = "", remedy: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.stdout = stdout
        self.stderr = stderr


def all_errors() -> list[type[FourwallsError]]:
    """Every class of the tree, the root first."""
    found: list[type[FourwallsError]] = [FourwallsError]
    for cls in found:
        found.extend(cls.__subclasses__())
    return found
