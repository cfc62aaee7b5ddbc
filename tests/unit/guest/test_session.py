"""A session against an agent that behaves: every request, both directions of credit, the end."""

from __future__ import annotations

import asyncio
import os

import msgspec
import pytest

from fourwalls.guest import messages, shim
from fourwalls.guest.frame import Kind
from fourwalls.guest.inbox import Closed, Gap, Output
from fourwalls.guest.process import WINDOW, ExecRequest, ProcessStream
from fourwalls.guest.session import HelloOptions, Session
from fourwalls.model.cause import Cause
from fourwalls.model.errors import (
    AgentProtocolError,
    CommandStartError,
    NotFoundError,
    PathNotFoundError,
    ProcessNotFoundError,
    SandboxError,
    SandboxGoneError,
)

from .fake_agent import FakeAgent, connect, greeted

ENTRY = messages.Entry(name=b"a", path=b"/d/a", size=3)


async def start(session: Session, agent: FakeAgent) -> tuple[ProcessStream, int]:
    task = asyncio.create_task(session.exec(ExecRequest(argv=[b"x"])))
    stream, _ = await agent.expect(Kind.EXEC_START)
    agent.send(Kind.STARTED, stream, messages.Started(pid=42))
    return await task, stream


async def test_greeting_drops_stale_frames_first() -> None:
    session, agent = await connect()
    task = asyncio.create_task(session.hello(HelloOptions(user="u", env={"A": b"\xff"}, nproc=9)))
    kind, _, _, body = await agent.receive()
    assert kind == Kind.HELLO
    hello = msgspec.msgpack.decode(body, type=messages.Hello)
    assert (hello.user, hello.env, hello.limits.nproc) == ("u", {"A": b"\xff"}, 9)
    agent.data(7, 1, 12345, b"of an earlier connection")
    agent.send(Kind.EXIT, 7, messages.Exit())
    agent.send(Kind.PONG)
    agent.send(Kind.HELLO_OK, 0, messages.HelloOk(generation=1, nonce=bytes(16)))
    agent.send(Kind.HELLO_OK, 0, messages.HelloOk(generation=1, nonce=hello.nonce, pid=1))
    assert (await task).pid == 1
    session.close()
    agent.close()


async def test_a_start_nobody_waits_for_is_ended() -> None:
    async with greeted() as (session, agent):
        start_ = asyncio.create_task(session.exec(ExecRequest(argv=[b"x"], timeout=0)))
        stream, _ = await agent.expect(Kind.EXEC_START)
        start_.cancel()
        await asyncio.wait([start_])
        assert (await agent.expect(Kind.CANCEL))[0] == stream
        agent.send(Kind.STARTED, stream, messages.Started(pid=42))
        agent.send(Kind.OK, stream)
        killing, body = await agent.expect(Kind.EXEC_SIGNAL)
        assert (body["pid"], body["signal"], body["tree"]) == (42, 9, True)
        agent.send(Kind.OK, killing)
        # Joining is something else: who gives that up ends nothing.
        joining = asyncio.create_task(session.attach(pid=7))
        stream, _ = await agent.expect(Kind.EXEC_ATTACH)
        joining.cancel()
        await asyncio.wait([joining])
        assert (await agent.expect(Kind.CANCEL))[0] == stream
        agent.send(Kind.STARTED, stream, messages.Started(pid=7))
        agent.send(Kind.OK, stream)
        listing = asyncio.create_task(session.exec_list())
        stream, _ = await agent.expect(Kind.EXEC_LIST)
        agent.send(Kind.RESULT, stream, messages.ProcessList())
        assert await listing == []


async def test_exec_events_in_order() -> None:
    async with greeted() as (session, agent):
        request = ExecRequest(argv=[b"ls"], cwd=b"/", pty=(100, 30), timeout=1.5, tag="t")
        task = asyncio.create_task(session.exec(request))
        stream, body = await agent.expect(Kind.EXEC_START)
        assert body["pty"] == {"cols": 100, "rows": 30}
        assert (body["timeout_ms"], body["credit"], body["tag"]) == (1500, WINDOW, "t")
        agent.send(Kind.STARTED, stream, messages.Started(pid=42, offsets=(10, 5)))
        agent.data(stream, 1, 10, b"out")
        agent.data(stream, 2, 7, b"err")
        agent.send(Kind.EOF, stream)
        process = await task
        assert process.pid == 42
        # EOF on channel 0 is not one of a process's output channels.
        with pytest.raises(AgentProtocolError, match="channel 0"):
            _ = [event async for event in process]


async def test_exec_to_the_end() -> None:
    async with greeted() as (session, agent):
        process, stream = await start(session, agent)
        agent.data(stream, 1, 0, b"out")
        agent.data(stream, 2, 7, b"err")
        agent.raw(b"\0\0\0\0\x06\x01\0\0" + stream.to_bytes(4, "little"))
        agent.send(Kind.EXIT, stream, messages.Exit(code=3))
        events = [event async for event in process]
        assert events == [
            messages.Started(pid=42),
            Output(1, b"out"),
            Gap(2, 7),
            Output(2, b"err"),
            Closed(1),
            messages.Exit(code=3),
        ]
        with pytest.raises(ProcessNotFoundError):
            await process.send_stdin(b"late")


async def test_did_not_start() -> None:
    async with greeted() as (session, agent):
        task = asyncio.create_task(session.exec(ExecRequest(argv=[b"x"])))
        stream, _ = await agent.expect(Kind.EXEC_START)
        agent.send(
            Kind.ERROR,
            stream,
            messages.Error(code="start_failed", errno=2, stage="exec", message="no\x1b[31m such"),
        )
        with pytest.raises(CommandStartError, match=r"no\\x1b\[31m such") as caught:
            await task
        assert (caught.value.stage, caught.value.errno) == ("exec", 2)


async def test_credit_comes_back_only_for_what_was_read() -> None:
    async with greeted() as (session, agent):
        process, stream = await start(session, agent)
        block = bytes(WINDOW // 8)
        for index in range(8):
            agent.data(stream, 1, index * len(block), block)
        # Nothing read: no credit, however long one waits.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(agent.receive()), 0.1)
        assert isinstance(await process.next_event(), messages.Started)
        returned = 0
        for _ in range(8):
            await process.next_event()
        # The receive that was shielded above is still pending and takes the first frame.
        await asyncio.sleep(0.05)
        _, body = await agent.expect(Kind.CREDIT)
        returned = body["bytes"]
        assert returned == WINDOW // 2


async def test_stdin_waits_for_credit_and_closes() -> None:
    async with greeted() as (session, agent):
        process, stream = await start(session, agent)
        data = os.urandom(700_000)
        sender = asyncio.create_task(process.send_stdin(data))
        received = b""
        while len(received) < len(data):
            agent.send(Kind.CREDIT, stream, messages.Credit(bytes=100_000))
            kind, channel, number, body = await agent.receive()
            assert (kind, channel, number) == (Kind.DATA, 0, stream)
            assert int.from_bytes(body[:8], "little") == len(received)
            received += body[8:]
        await sender
        assert received == data
        await process.close_stdin()
        assert (await agent.receive())[0] == Kind.EOF


async def test_detach_leaves_the_process_and_ignores_what_follows() -> None:
    async with greeted() as (session, agent):
        process, stream = await start(session, agent)
        process.detach()
        assert (await agent.expect(Kind.CANCEL))[0] == stream
        agent.data(stream, 1, 0, b"late")
        agent.send(Kind.OK, stream)
        assert [type(event) async for event in process] == [messages.Started]
        listing = asyncio.create_task(session.exec_list())
        number, _ = await agent.expect(Kind.EXEC_LIST)
        agent.send(Kind.RESULT, number, messages.ProcessList())
        assert await listing == []


async def test_cancelled_call_is_cancelled_in_the_agent() -> None:
    async with greeted() as (session, agent):
        task = asyncio.create_task(session.files.stat(b"/slow"))
        stream, _ = await agent.expect(Kind.FILE_STAT)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await agent.expect(Kind.CANCEL))[0] == stream
        agent.send(Kind.RESULT, stream, ENTRY)


async def test_request_timeout_names_the_remedy() -> None:
    async with greeted() as (session, agent):
        with pytest.raises(SandboxError, match="did not answer FILE_STAT within"):
            await session.files.stat(b"/slow", timeout=0.05)
        await agent.expect(Kind.FILE_STAT)
        await agent.expect(Kind.CANCEL)


async def test_files_read_write_and_list() -> None:
    async with greeted() as (session, agent):
        opening = asyncio.create_task(session.files.read(b"/f"))
        stream, _ = await agent.expect(Kind.FILE_READ)
        agent.send(Kind.STARTED_READ, stream, messages.StartedRead(size=6))
        agent.data(stream, 0, 0, b"abc")
        agent.data(stream, 0, 3, b"def")
        agent.send(Kind.OK, stream)
        reader = await opening
        assert (reader.size, b"".join([piece async for piece in reader])) == (6, b"abcdef")

        opening_write = asyncio.create_task(session.files.write(b"/f", mode=0o600))
        stream, body = await agent.expect(Kind.FILE_WRITE)
        assert (body["mode"], body["append"]) == (0o600, False)
        agent.send(Kind.READY, stream)
        agent.send(Kind.CREDIT, stream, messages.Credit(bytes=1000))
        writer = await opening_write
        await writer.write(b"hello")
        done = asyncio.create_task(writer.finish())
        assert (await agent.receive())[3][8:] == b"hello"
        assert (await agent.receive())[0] == Kind.EOF
        agent.send(Kind.RESULT, stream, ENTRY)
        assert await done == ENTRY

        listing = asyncio.create_task(session.files.list(b"/d/", 2))
        stream, _ = await agent.expect(Kind.FILE_LIST)
        agent.send(Kind.ENTRIES, stream, messages.Entries(entries=[ENTRY]))
        agent.send(Kind.OK, stream)
        assert await listing == [ENTRY]

        missing = asyncio.create_task(session.files.stat(b"/no"))
        stream, _ = await agent.expect(Kind.FILE_STAT)
        agent.send(Kind.ERROR, stream, messages.Error(code="not_found", message="/no"))
        with pytest.raises(PathNotFoundError):
            await missing


async def test_a_failed_upload_wakes_the_writer() -> None:
    async with greeted() as (session, agent):
        opening = asyncio.create_task(session.files.write(b"/f"))
        stream, _ = await agent.expect(Kind.FILE_WRITE)
        agent.send(Kind.READY, stream)
        writer = await opening
        writing = asyncio.create_task(writer.write(b"x"))
        await asyncio.sleep(0.01)
        agent.send(Kind.ERROR, stream, messages.Error(code="no_space", message="full"))
        with pytest.raises(Exception, match="full"):
            await writing


async def test_tunnel_and_refusal() -> None:
    async with greeted() as (session, agent):
        dialing = asyncio.create_task(session.dial(80))
        stream, body = await agent.expect(Kind.TUNNEL_DIAL)
        assert body["port"] == 80
        agent.send(Kind.READY, stream)
        agent.send(Kind.CREDIT, stream, messages.Credit(bytes=10))
        tunnel = await dialing
        await tunnel.write(b"ping")
        assert (await agent.receive())[3][8:] == b"ping"
        agent.data(stream, 0, 0, b"pong")
        agent.send(Kind.EOF, stream)
        assert [await tunnel.read() for _ in range(3)] == [b"pong", b"", b""]
        await tunnel.write_eof()
        assert (await agent.receive())[0] == Kind.EOF
        agent.send(Kind.OK, stream)

        dialing = asyncio.create_task(session.dial(81))
        stream, _ = await agent.expect(Kind.TUNNEL_DIAL)
        agent.send(Kind.ERROR, stream, messages.Error(code="refused", message="port 81"))
        with pytest.raises(NotFoundError):
            await dialing


async def test_watch_reports_overflow() -> None:
    async with greeted() as (session, agent):
        opening = asyncio.create_task(session.files.watch(b"/d"))
        stream, _ = await agent.expect(Kind.FILE_WATCH)
        agent.send(Kind.READY, stream)
        event = messages.WatchEvent(kind="create", name=b"x")
        agent.send(Kind.EVENTS, stream, messages.Events(events=[event], overflow=True))
        watch = await opening
        assert await watch.next_event() == event
        assert watch.overflow
        watch.close()
        assert await watch.next_event() is None


async def test_requests_run_side_by_side() -> None:
    async with greeted() as (session, agent):
        tasks = [asyncio.create_task(session.files.stat(b"/%d" % i)) for i in range(50)]
        requests = [await agent.expect(Kind.FILE_STAT) for _ in tasks]
        for stream, body in reversed(requests):
            agent.send(Kind.RESULT, stream, messages.Entry(name=b"n", path=body["path"]))
        assert [(await task).path for task in tasks] == [b"/%d" % i for i in range(50)]


async def test_heartbeat_only_while_waiting() -> None:
    async with greeted(heartbeat=0.02) as (session, agent):
        receiving = asyncio.create_task(agent.receive())
        await asyncio.sleep(0.1)
        assert agent.pings == 0
        waiting = asyncio.create_task(session.files.stat(b"/slow"))
        kind, _, stream, _ = await receiving
        assert kind == Kind.FILE_STAT
        receiving = asyncio.create_task(agent.receive())
        await asyncio.sleep(0.3)
        assert agent.pings >= 3
        assert session.failure is None
        agent.send(Kind.RESULT, stream, ENTRY)
        await waiting
        await asyncio.sleep(0.05)
        pings = agent.pings
        await asyncio.sleep(0.1)
        assert agent.pings == pings
        receiving.cancel()


async def test_dead_agent_is_noticed() -> None:
    async with greeted(heartbeat=0.02) as (session, agent):
        waiting = asyncio.create_task(session.files.stat(b"/slow"))
        await agent.expect(Kind.FILE_STAT)
        with pytest.raises(AgentProtocolError, match="stopped answering"):
            await asyncio.wait_for(waiting, 2)


async def test_the_shims_frames() -> None:
    async with greeted() as (session, agent):
        lease = asyncio.create_task(session.set_lease(12345))
        _, body = await agent.expect(Kind.LEASE)
        assert body == {"deadline_ns": 12345}
        agent.send(Kind.STATE, 0, shim.State(phase="running", shim_pid=7, lease_deadline_ns=12345))
        assert (await lease).shim_pid == 7
        assert session.state is not None
        assert session.state.phase == "running"

        waiting = asyncio.create_task(session.files.stat(b"/x"))
        await agent.expect(Kind.FILE_STAT)
        ending = asyncio.create_task(session.end("killed"))
        assert (await agent.expect(Kind.KILL))[1] == {"cause": "killed"}
        agent.send(Kind.GONE, 0, shim.Gone(id="s", cause="killed", message="m", oom_kills=2))
        record = await ending
        assert (record.cause, record.oom_kills) == (Cause.KILLED, 2)
        for call in (waiting, session.exec_list()):
            with pytest.raises(SandboxGoneError, match="killed") as caught:
                await call
            assert caught.value.cause == "killed"
        assert await session.end() == record


async def test_eof_without_a_record() -> None:
    async with greeted() as (session, agent):
        waiting = asyncio.create_task(session.files.stat(b"/x"))
        await agent.expect(Kind.FILE_STAT)
        agent.close()
        with pytest.raises(SandboxGoneError):
            await waiting
        with pytest.raises(SandboxGoneError):
            await asyncio.shield(session.gone)


async def test_output_before_the_end_is_still_delivered() -> None:
    async with greeted() as (session, agent):
        process, stream = await start(session, agent)
        agent.data(stream, 1, 0, b"last words")
        agent.send(Kind.GONE, 0, shim.Gone(id="s", cause="lease_expired"))
        assert isinstance(await process.next_event(), messages.Started)
        assert await process.next_event() == Output(1, b"last words")
        with pytest.raises(SandboxGoneError) as caught:
            await process.next_event()
        assert caught.value.cause == "lease_expired"
