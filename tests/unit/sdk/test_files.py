"""Files, against an agent played by the test."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from fourwalls.guest.frame import Kind
from fourwalls.guest.messages import Credit, Entry, Error, Events, StartedRead, WatchEvent
from fourwalls.model.errors import InvalidArgumentError, LimitError, SandboxError
from fourwalls.sdk import FilesystemEventType
from tests.unit.guest.fake_agent import FakeAgent

from .stub import sandbox

ENTRY = Entry(name=b"f", path=b"/f")


async def serve_read(agent: FakeAgent, content: bytes) -> dict[str, Any]:
    stream, body = await agent.expect(Kind.FILE_READ)
    agent.send(Kind.STARTED_READ, stream, StartedRead(size=len(content)))
    if content:
        agent.data(stream, 0, 0, content)
    agent.send(Kind.OK, stream)
    return body


async def take_upload(agent: FakeAgent) -> tuple[dict[str, Any], bytes]:
    stream, body = await agent.expect(Kind.FILE_WRITE)
    agent.send(Kind.READY, stream)
    agent.send(Kind.CREDIT, stream, Credit(bytes=2**30))
    content = b""
    while True:
        kind, _, _, data = await agent.receive()
        if kind == Kind.EOF:
            agent.send(Kind.RESULT, stream, ENTRY)
            return body, content
        content += data[8:]


async def test_read_in_its_forms() -> None:
    async with sandbox() as (box, agent, _):
        for form, expected in (("text", "ä\ufffd"), ("bytes", b"\xc3\xa4\xff")):
            task = asyncio.create_task(box.files.read("/f", form))  # type: ignore[call-overload]
            assert (await serve_read(agent, b"\xc3\xa4\xff"))["path"] == b"/f"
            assert await task == expected
        task = asyncio.create_task(box.files.read("/f", "stream"))
        await serve_read(agent, b"abc")
        assert [piece async for piece in await task] == [b"abc"]
        with pytest.raises(InvalidArgumentError, match="text, bytes or stream"):
            await box.files.read("/f", "blob")  # type: ignore[call-overload]


async def test_reading_for_ever_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fourwalls.sdk.asynchronous.files.READ_LIMIT", 10)
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.files.read("/dev/zero"))
        stream, _ = await agent.expect(Kind.FILE_READ)
        agent.send(Kind.STARTED_READ, stream, StartedRead(size=0))
        agent.data(stream, 0, 0, bytes(11))
        with pytest.raises(LimitError, match='format="stream"'):
            await task
        assert (await agent.expect(Kind.CANCEL))[0] == stream


async def test_relative_paths_start_at_home() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.files.read("a/b"))
        passwd = b"root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n"
        assert (await serve_read(agent, passwd))["path"] == b"/etc/passwd"
        assert (await serve_read(agent, b"x"))["path"] == b"/home/user/a/b"
        await task
        # Known by now; another user's is looked up.
        task = asyncio.create_task(box.files.read("~/c"))
        assert (await serve_read(agent, b"x"))["path"] == b"/home/user/c"
        await task
        task = asyncio.create_task(box.files.read("c", user="root"))
        await serve_read(agent, passwd)
        assert (await serve_read(agent, b"x"))["path"] == b"/root/c"
        await task
        task = asyncio.create_task(box.files.read("~nobody/c"))
        await serve_read(agent, passwd)
        with pytest.raises(InvalidArgumentError, match="nobody"):
            await task


def numbers() -> Iterator[bytes]:
    yield b"one"
    yield b"two"


async def letters() -> AsyncIterator[str]:
    yield "ä"
    yield "b"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("tëxt", "tëxt".encode()),
        (b"", b""),
        (bytearray(b"raw\0"), b"raw\0"),
        (memoryview(b"view"), b"view"),
        (io.BytesIO(b"x" * 3_000_000), b"x" * 3_000_000),
        (io.StringIO("ünï"), "ünï".encode()),
    ],
    ids=["str", "empty", "bytearray", "memoryview", "file", "text-file"],
)
async def test_write_takes_anything_with_content(data: object, expected: bytes) -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.files.write("/f", data, mode=0o600))  # type: ignore[arg-type]
        body, content = await take_upload(agent)
        assert content == expected
        assert (body["mode"], body["user"], body["append"]) == (0o600, None, False)
        assert (await task).path == "/f"


async def test_write_takes_iterators() -> None:
    async with sandbox() as (box, agent, _):
        for data, expected in ((numbers(), b"onetwo"), (letters(), "äb".encode())):
            task = asyncio.create_task(box.files.write("/f", data))  # type: ignore[arg-type]
            assert (await take_upload(agent))[1] == expected
            await task


async def test_a_source_that_fails_gives_the_upload_up() -> None:
    async with sandbox() as (box, agent, _):

        def broken() -> Iterator[bytes]:
            yield b"start"
            raise ZeroDivisionError

        task = asyncio.create_task(box.files.write("/f", broken()))
        stream, _ = await agent.expect(Kind.FILE_WRITE)
        agent.send(Kind.READY, stream)
        agent.send(Kind.CREDIT, stream, Credit(bytes=100))
        with pytest.raises(ZeroDivisionError):
            await task
        kinds = [(await agent.receive())[0], (await agent.receive())[0]]
        assert kinds == [Kind.DATA, Kind.CANCEL]


async def test_nonsense_is_refused_before_anything_is_sent() -> None:
    async with sandbox() as (box, agent, _):
        for data in (None, 5, object()):
            with pytest.raises(InvalidArgumentError):
                await box.files.write("/f", data)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError):
            await box.files.list("/f", depth=0)
        with pytest.raises(InvalidArgumentError):
            await box.files.write_files([{"path": "/f"}])
        task = asyncio.create_task(box.files.exists("/f"))
        stream, _ = await agent.expect(Kind.FILE_STAT)
        agent.send(Kind.ERROR, stream, Error(code="not_found"))
        assert not await task


async def test_watch_marks_overflow() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.files.watch_dir("/d", recursive=True))
        stream, _ = await agent.expect(Kind.FILE_WATCH)
        agent.send(Kind.READY, stream)
        event = WatchEvent(kind="create", name=b"x")
        agent.send(Kind.EVENTS, stream, Events(events=[event], overflow=True))
        watch = await task
        await asyncio.sleep(0.02)
        kinds = [event.type for event in watch.get_new_events()]
        assert kinds == [FilesystemEventType.OVERFLOW, FilesystemEventType.CREATE]
        assert watch.get_new_events() == []
        await watch.stop()
        assert [event async for event in watch] == []


async def test_request_timeout_bounds_the_whole_transfer() -> None:
    async with sandbox() as (box, agent, _):
        task = asyncio.create_task(box.files.read("/f", "bytes", request_timeout=0.05))
        stream, _ = await agent.expect(Kind.FILE_READ)
        agent.send(Kind.STARTED_READ, stream, StartedRead(size=3))
        agent.data(stream, 0, 0, b"a")
        with pytest.raises(SandboxError, match="request_timeout"):
            await task
        assert (await agent.expect(Kind.CANCEL))[0] == stream

        def late() -> Iterator[bytes]:
            raise TimeoutError("the source's own")
            yield b""

        task = asyncio.create_task(box.files.write("/f", late(), request_timeout=5))
        stream, _ = await agent.expect(Kind.FILE_WRITE)
        agent.send(Kind.READY, stream)
        with pytest.raises(TimeoutError, match="the source's own"):
            await task
