"""Commands, against an agent played by the test."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from fourwalls.guest.frame import Kind
from fourwalls.guest.messages import Credit, Error, Exit, Process, ProcessList, Started
from fourwalls.model.errors import (
    CommandError,
    CommandExitError,
    CommandStartError,
    CommandTimeoutError,
    InvalidArgumentError,
)
from fourwalls.sdk import PtySize

from .stub import run_once, sandbox, started

NO_SUCH_PROGRAM = Error(code="start_failed", errno=2, stage="exec", message="no such file")


async def test_a_string_goes_to_the_login_shell() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.run("echo hi", envs={"A": "ü"}, cwd="/tmp"))
        body = await run_once(agent, b"hi\n")
        assert body["argv"] == [b"/bin/bash", b"-l", b"-c", b"echo hi"]
        assert (body["env"], body["cwd"], body["timeout_ms"]) == (
            {"A": "ü".encode()},
            b"/tmp",
            60000,
        )
        assert body["stdin"] is False
        result = await task
        assert (result.stdout, result.exit_code, result.cause) == ("hi\n", 0, "exited")


async def test_a_list_is_run_directly() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.run(["ls", "-l", "a b"], timeout=0))
        body = await run_once(agent)
        assert (body["argv"], body["timeout_ms"]) == ([b"ls", b"-l", b"a b"], 0)
        await task


async def test_sh_stands_in_for_bash_once_and_for_all() -> None:
    async with sandbox() as (box, agent, _):
        for attempt in range(2):
            task = asyncio.create_task(box.commands.run("true"))
            if attempt == 0:
                stream, _ = await agent.expect(Kind.EXEC_START)
                agent.send(
                    Kind.ERROR,
                    stream,
                    Error(code="start_failed", errno=2, stage="exec", message="x"),
                )
            assert (await run_once(agent))["argv"][0] == b"/bin/sh"
            await task


async def test_did_not_start_is_not_an_exit_code() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.run(["nonsense"]))
        stream, _ = await agent.expect(Kind.EXEC_START)
        agent.send(
            Kind.ERROR, stream, Error(code="start_failed", errno=2, stage="exec", message="x")
        )
        with pytest.raises(CommandStartError):
            await task


async def test_characters_cut_in_two_reach_callbacks_whole() -> None:
    async with sandbox() as (box, agent, _):
        got: list[str] = []

        async def on_stderr(text: str) -> None:
            await asyncio.sleep(0)
            got.append("E" + text)

        task = asyncio.create_task(box.commands.run("x", on_stdout=got.append, on_stderr=on_stderr))
        stream, _ = await started(agent)
        raw = "ä€".encode()
        for offset in range(len(raw)):
            agent.data(stream, 1, offset, raw[offset : offset + 1])
            await asyncio.sleep(0.005)
        agent.data(stream, 2, 0, b"e\xc3")
        agent.send(Kind.EXIT, stream, Exit())
        result = await task
        assert (result.stdout, result.stderr) == ("ä€", "e\ufffd")
        assert got == ["ä", "€", "Ee", "E\ufffd"]


async def test_oom_is_named() -> None:
    async with sandbox() as (box, agent, stub):
        task = asyncio.create_task(box.commands.run("x"))
        stream, _ = await started(agent)
        stub.oom += 1
        agent.send(Kind.EXIT, stream, Exit(code=-1, signal=9))
        with pytest.raises(CommandExitError, match="ran out of memory") as caught:
            await task
        assert (caught.value.cause, caught.value.signal, caught.value.exit_code) == ("oom", 9, -1)


async def test_gaps_count_as_dropped() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.connect(42, offsets=(0, 0)))
        stream, body = await agent.expect(Kind.EXEC_ATTACH)
        assert (body["pid"], body["offsets"]) == (42, [0, 0])
        agent.send(Kind.STARTED, stream, Started(pid=42, offsets=(100, 7)))
        agent.data(stream, 1, 150, b"rest")
        agent.send(Kind.EXIT, stream, Exit())
        handle = await task
        result = await handle.wait()
        assert (result.stdout, result.stdout_dropped) == ("rest", 150)
        assert (result.stderr_dropped, handle.offsets) == (7, (154, 7))


async def test_iteration_yields_everything_once_even_when_late() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.run("x", background=True, output_limit=4))
        stream, _ = await started(agent)
        handle = await task
        agent.data(stream, 1, 0, b"ab")
        agent.data(stream, 2, 0, b"12")
        await asyncio.sleep(0.02)
        pieces = handle.pieces()
        assert await anext(pieces) == ("ab", None, None)
        agent.data(stream, 1, 2, b"cdefgh")
        agent.send(Kind.EXIT, stream, Exit())
        rest = [piece async for piece in pieces]
        assert "".join(out or "" for out, _, _ in rest) == "cdefgh"
        result = await handle.wait()
        assert (result.stdout, result.stdout_dropped, handle.offsets) == ("abcd", 4, (8, 2))


async def test_a_flood_beyond_the_limit_waits_for_its_follower() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.run("x", background=True, output_limit=0))
        stream, body = await started(agent)
        handle = await task
        pieces = handle.pieces()
        credit = body["credit"]
        first = asyncio.create_task(anext(pieces))
        await asyncio.sleep(0)
        sent = 0
        while credit:
            agent.data(stream, 1, sent, bytes(65536))
            sent += 65536
            credit -= 65536
        await first
        granted = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                while True:
                    granted += (await agent.expect(Kind.CREDIT))[1]["bytes"]
        # Not everything was granted again, as the iterator has not taken it.
        assert granted <= body["credit"]
        await pieces.aclose()


async def test_stdin_as_data() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.run("cat", stdin="hello"))
        stream, body = await started(agent)
        assert body["stdin"] is True
        agent.send(Kind.CREDIT, stream, Credit(bytes=100))
        assert (await agent.receive())[3][8:] == b"hello"
        assert (await agent.receive())[0] == Kind.EOF
        agent.send(Kind.EXIT, stream, Exit())
        await task


async def test_stdin_that_is_not_there_is_refused_at_once() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.run("cat", background=True))
        await started(agent)
        with pytest.raises(InvalidArgumentError, match="stdin=True"):
            await (await task).send_stdin("x")


async def test_cancelled_run_is_killed() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.run("sleep 100"))
        await started(agent)
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        stream, body = await agent.expect(Kind.EXEC_SIGNAL)
        assert (body["pid"], body["signal"], body["tree"]) == (42, 9, True)
        agent.send(Kind.OK, stream)


async def test_failing_callback_fails_the_run_and_kills() -> None:
    async with sandbox() as (box, agent, _):

        def fail(text: str) -> None:
            raise ZeroDivisionError(text)

        task = asyncio.create_task(box.commands.run("x", on_stdout=fail))
        stream, _ = await started(agent)
        agent.data(stream, 1, 0, b"boom")
        with pytest.raises(ZeroDivisionError, match="boom"):
            await task
        assert (await agent.expect(Kind.CANCEL))[0] == stream
        await agent.expect(Kind.EXEC_SIGNAL)


async def test_timeout_by_the_agent() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.run("x", timeout=0.5))
        body = await run_once(agent, b"partial", Exit(code=-1, signal=9, timed_out=True))
        assert body["timeout_ms"] == 500
        with pytest.raises(CommandTimeoutError, match=r"0\.5 s") as caught:
            await task
        assert caught.value.stdout == "partial"


async def test_timeout_by_the_host_when_the_agent_does_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fourwalls.sdk.asynchronous.handle.GRACE", 0.05)
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.run("x", timeout=0.05))
        await started(agent)
        await agent.expect(Kind.EXEC_SIGNAL)
        with pytest.raises(CommandTimeoutError):
            await asyncio.wait_for(task, 2)


async def test_disconnect_leaves_the_command() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.run("x", background=True))
        stream, _ = await started(agent)
        handle = await task
        await handle.disconnect()
        assert (await agent.expect(Kind.CANCEL))[0] == stream
        with pytest.raises(CommandError, match="disconnected"):
            await handle.wait()


async def test_list_shows_what_runs() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.commands.list())
        stream, _ = await agent.expect(Kind.EXEC_LIST)
        processes = [Process(pid=1, argv=[b"a", b"b"], running=True), Process(pid=2)]
        agent.send(Kind.RESULT, stream, ProcessList(processes=processes))
        (only,) = await task
        assert (only.pid, only.cmd, only.args) == (1, "a", ["b"])


async def test_kill_says_whether_there_was_something() -> None:
    async with sandbox() as (box, agent, _):
        for answer, expected in ((Kind.OK, True), (Kind.ERROR, False)):
            task = asyncio.create_task(box.commands.kill(7))
            stream, _ = await agent.expect(Kind.EXEC_SIGNAL)
            agent.send(answer, stream, Error(code="not_found") if answer == Kind.ERROR else None)
            assert await task is expected


async def test_terminals() -> None:
    async with sandbox() as (box, agent, _):
        got: list[bytes] = []
        task = asyncio.create_task(box.pty.create(PtySize(rows=24, cols=80), got.append, timeout=0))
        stream, body = await started(agent)
        assert (body["argv"], body["pty"]) == (
            [b"/bin/bash", b"-i", b"-l"],
            {"cols": 80, "rows": 24},
        )
        assert body["env"]["TERM"] == b"xterm-256color"
        handle = await task
        agent.data(stream, 3, 0, b"$ \xff")
        resizing = asyncio.create_task(box.pty.resize(handle.pid, PtySize(rows=50, cols=132)))
        number, body = await agent.expect(Kind.EXEC_RESIZE)
        assert (body["cols"], body["rows"]) == (132, 50)
        agent.send(Kind.OK, number)
        await resizing
        agent.send(Kind.EXIT, stream, Exit())
        await handle.wait()
        assert got == [b"$ \xff"]
        with pytest.raises(InvalidArgumentError, match="PtySize"):
            await box.pty.create((24, 80))  # type: ignore[arg-type]
