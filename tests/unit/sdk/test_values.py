"""From the agent's words to the caller's."""

from __future__ import annotations

import pytest

from fourwalls.guest.messages import Entry, Exit, Process, WatchEvent
from fourwalls.guest.process import STDERR, STDOUT
from fourwalls.model.errors import CommandExitError, CommandTimeoutError
from fourwalls.sdk.outcome import LimitWatch, check_result, make_result
from fourwalls.sdk.output import Output
from fourwalls.sdk.values import (
    FilesystemEvent,
    FilesystemEventType,
    FileType,
    entry_info,
    filesystem_event,
    process_info,
)


def test_entries() -> None:
    entry = Entry(
        name=b"l\xff",
        path=b"/d/l\xff",
        kind="symlink",
        size=3,
        mode=0o777,
        owner="user",
        mtime_ns=1_700_000_000_123_456_789,
        target=b"/x",
        target_kind="dir",
    )
    info = entry_info(entry)
    assert (info.name, info.path) == ("l\udcff", "/d/l\udcff")
    assert (info.type, info.permissions) == (FileType.SYMLINK, "lrwxrwxrwx")
    assert (info.symlink_target, info.target_type) == ("/x", FileType.DIR)
    assert info.modified_time.isoformat() == "2023-11-14T22:13:20.123456+00:00"


@pytest.mark.parametrize("moment", [2**63 - 1, -(2**63)])
def test_times_no_calendar_holds(moment: int) -> None:
    entry_info(Entry(name=b"a", path=b"/a", mtime_ns=moment))


def test_kinds_of_the_future_are_not_fatal() -> None:
    info = entry_info(Entry(name=b"a", path=b"/a", kind="portal", target_kind="portal"))
    assert (info.type, info.target_type) == (None, None)
    assert filesystem_event(WatchEvent(kind="teleport", name=b"a")) is None
    event = filesystem_event(WatchEvent(kind="rename", name=b"a/\xff"))
    assert event == FilesystemEvent("a/\udcff", FilesystemEventType.RENAME)


def test_processes() -> None:
    info = process_info(Process(pid=7, argv=[b"sh", b"-c", b"\xff"], env={"A": b"1"}, cwd=b"/"))
    assert (info.cmd, info.args, info.envs, info.cwd) == ("sh", ["-c", "\udcff"], {"A": "1"}, "/")
    assert process_info(Process(pid=7)).cmd == ""


class Counter:
    """An OOM counter a test can turn."""

    value = 0

    def __call__(self) -> int:
        return self.value


@pytest.mark.parametrize(
    ("exit_", "killed", "oom", "cause", "error"),
    [
        (Exit(), False, False, "exited", None),
        (Exit(code=3), False, False, "exited", "exit status 3"),
        (Exit(code=-1, signal=9), False, False, "signaled", "signal: killed"),
        (Exit(code=-1, signal=9), True, False, "killed", "signal: killed"),
        (Exit(code=-1, signal=9), False, True, "oom", "signal: killed"),
        (Exit(code=137), False, True, "oom", "exit status 137"),
        (Exit(code=1), False, True, "exited", "exit status 1"),
        (Exit(code=2), False, True, "exited", "exit status 2"),
        (
            Exit(code=-1, signal=11, core=True),
            False,
            False,
            "signaled",
            "signal: segmentation fault (core dumped)",
        ),
        (Exit(code=1, disk_full=True), False, False, "disk_full", "exit status 1"),
        (Exit(code=-1, signal=9, timed_out=True), False, True, "timeout", "signal: killed"),
        (Exit(code=-1, signal=127), False, False, "signaled", "signal: 127"),
    ],
)
def test_causes(exit_: Exit, killed: bool, oom: bool, cause: str, error: str | None) -> None:
    counter = Counter()
    watch = LimitWatch(counter, lambda: False)
    counter.value += oom
    result = make_result(exit_, Output(10), killed=killed, limits=watch)
    assert (result.cause, result.error) == (cause, error)
    assert result.signal == (exit_.signal or None)


def test_the_host_sees_a_full_disk_where_the_guest_cannot() -> None:
    watch = LimitWatch(Counter(), lambda: True)
    failed = make_result(Exit(code=1), Output(10), killed=False, limits=watch)
    well = make_result(Exit(code=0), Output(10), killed=False, limits=watch)
    assert (failed.cause, well.cause) == ("disk_full", "exited")


def test_ends_that_raise() -> None:
    output = Output(100)
    output.add(STDOUT, b"out", followed=False)
    output.add(STDERR, b"bad thing", followed=False)
    watch = LimitWatch(Counter(), lambda: False)
    failed = make_result(Exit(code=2), output, killed=False, limits=watch)
    with pytest.raises(CommandExitError, match="code 2 and error:\nbad thing") as caught:
        check_result(failed, 1)
    assert (caught.value.stdout, caught.value.stderr) == ("out", "bad thing")
    assert (caught.value.exit_code, caught.value.cause) == (2, "exited")
    late = make_result(Exit(code=-1, signal=9, timed_out=True), output, killed=False, limits=watch)
    with pytest.raises(CommandTimeoutError, match=r"1\.5 s") as timed_out:
        check_result(late, 1.5)
    assert timed_out.value.stdout == "out"
    well = make_result(Exit(), output, killed=False, limits=watch)
    assert check_result(well, 1) is well
