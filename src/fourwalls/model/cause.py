"""Why something ended. Always stated, always durable."""

from __future__ import annotations

import enum


class Cause(enum.Enum):
    """The closed list of reasons for the end of a command or a sandbox."""

    EXITED = "exited"
    SIGNALED = "signaled"
    TIMEOUT = "timeout"
    OOM = "oom"
    DISK_FULL = "disk_full"
    KILLED = "killed"
    LEASE_EXPIRED = "lease_expired"
    BOUNDARY_DIED = "boundary_died"
    HOST_LOST = "host_lost"
    UNKNOWN = "unknown"

    @classmethod
    def parse(cls, text: object) -> Cause:
        """The cause called ``text``; anything unknown is ``UNKNOWN``, as it may come from afar."""
        try:
            return cls(text)
        except ValueError:
            return cls.UNKNOWN
