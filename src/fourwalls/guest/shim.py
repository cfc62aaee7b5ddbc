"""The frames between host and shim: they share the connection with the agent's."""

from __future__ import annotations

from fourwalls.guest.messages import I32, U32, U64, Line, Message, Word
from fourwalls.model.cause import Cause
from fourwalls.model.sandbox import ExitRecord


class Lease(Message):
    """``deadline_ns`` is a moment of CLOCK_BOOTTIME; 0 means none."""

    deadline_ns: U64 = 0


class Kill(Message):
    cause: str = "killed"


class State(Message):
    """What the shim says of itself; ``phase`` is ``starting``, ``running`` or ``ending``."""

    phase: Word = "starting"
    init_pid: U32 = 0
    shim_pid: U32 = 0
    lease_deadline_ns: U64 = 0


class Gone(Message):
    """How a sandbox ended: the body of GONE, and the shape of ``exit.json``."""

    id: Word = ""
    cause: Word = "unknown"
    message: Line = ""
    stage: Word = ""
    exit_code: I32 = 0
    signal: I32 = 0
    oom_kills: U64 = 0
    pids_refused: U64 = 0
    stderr: str = ""
    started_at: float = 0.0
    ended_at: float = 0.0

    def record(self) -> ExitRecord:
        """The same as a value of the model."""
        return ExitRecord(
            sandbox_id=self.id,
            cause=Cause.parse(self.cause),
            message=self.message,
            stage=self.stage,
            exit_code=self.exit_code,
            signal=self.signal,
            oom_kills=self.oom_kills,
            pids_refused=self.pids_refused,
            stderr=self.stderr,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )
