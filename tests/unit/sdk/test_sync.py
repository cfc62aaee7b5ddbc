"""The sync SDK: a thread behind it, quick calls, and clear words where it cannot work."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from fourwalls.guest.frame import Kind
from fourwalls.guest.messages import Error, Exit, StartedRead
from fourwalls.model.errors import (
    CapabilityError,
    CommandExitError,
    InvalidArgumentError,
    SandboxError,
)
from fourwalls.sdk import Sandbox
from fourwalls.sdk.synchronous.runner import Runner
from tests.unit.guest.fake_agent import FakeAgent

from .stub import open_sandbox, run_once, started

Script = Callable[[FakeAgent], Coroutine[Any, Any, Any]]


class Stage:
    """A sync sandbox, and a way to play its agent in the background."""

    def __init__(self) -> None:
        self.runner = Runner()
        inner, self.agent, self.stub = self.runner.call(open_sandbox())
        self.sandbox = Sandbox(inner, self.runner)

    def play(self, script: Script) -> None:
        asyncio.run_coroutine_threadsafe(script(self.agent), self.runner._loop)

    def close(self) -> None:
        self.sandbox.kill()
        self.runner.call(self._close_agent())
        self.runner.close()

    async def _close_agent(self) -> None:
        self.agent.close()
        await asyncio.sleep(0)


@pytest.fixture
def stage() -> Iterator[Stage]:
    opened = Stage()
    yield opened
    opened.close()


def test_run_and_its_errors(stage: Stage) -> None:
    stage.play(lambda agent: run_once(agent, b"hi"))
    assert stage.sandbox.commands.run("echo hi").stdout == "hi"
    stage.play(lambda agent: run_once(agent, b"", Exit(code=4)))
    with pytest.raises(CommandExitError, match="code 4"):
        stage.sandbox.commands.run("false")


def test_callbacks_come_in_the_callers_thread(stage: Stage) -> None:
    threads: list[threading.Thread] = []
    got: list[str] = []

    def on_stdout(text: str) -> None:
        threads.append(threading.current_thread())
        got.append(text)

    stage.play(lambda agent: run_once(agent, "grün".encode()))
    result = stage.sandbox.commands.run("x", on_stdout=on_stdout)
    assert "".join(got) == result.stdout == "grün"
    assert set(threads) == {threading.current_thread()}


def test_a_callback_may_use_the_sandbox(stage: Stage) -> None:
    seen: list[bool] = []

    async def script(agent: FakeAgent) -> None:
        stream, _ = await started(agent)
        agent.data(stream, 1, 0, b"x")
        number, _ = await agent.expect(Kind.FILE_STAT)
        agent.send(Kind.ERROR, number, Error(code="not_found"))
        agent.send(Kind.EXIT, stream, Exit())

    stage.play(script)
    files = stage.sandbox.files
    stage.sandbox.commands.run("x", on_stdout=lambda _: seen.append(files.exists("/f")))
    assert seen == [False]


def test_background_handle(stage: Stage) -> None:
    async def script(agent: FakeAgent) -> None:
        stream, _ = await started(agent)
        agent.data(stream, 1, 0, b"one")
        agent.data(stream, 2, 0, b"two")
        agent.send(Kind.EXIT, stream, Exit())

    stage.play(script)
    handle = stage.sandbox.commands.run("x", background=True)
    assert handle.pid == 42
    assert list(handle) == [("one", None, None), (None, "two", None)]
    assert (handle.wait().stderr, handle.exit_code) == ("two", 0)
    with pytest.raises(InvalidArgumentError, match=r"wait\(\) of the handle"):
        stage.sandbox.commands.run("x", background=True, on_stdout=print)


def test_read_stream(stage: Stage) -> None:
    async def script(agent: FakeAgent) -> None:
        stream, _ = await agent.expect(Kind.FILE_READ)
        agent.send(Kind.STARTED_READ, stream, StartedRead(size=6))
        agent.data(stream, 0, 0, b"abc")
        agent.data(stream, 0, 3, b"def")
        agent.send(Kind.OK, stream)

    stage.play(script)
    assert b"".join(stage.sandbox.files.read("/f", "stream")) == b"abcdef"


def test_many_threads(stage: Stage) -> None:
    async def script(agent: FakeAgent) -> None:
        for _ in range(40):
            number, _ = await agent.expect(Kind.FILE_STAT)
            agent.send(Kind.ERROR, number, Error(code="not_found"))

    stage.play(script)
    answers: list[bool] = []

    def work() -> None:
        for _ in range(10):
            answers.append(stage.sandbox.files.exists("/f"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert answers == [False] * 40


def test_overhead_of_a_call(stage: Stage) -> None:
    async def nothing() -> None:
        pass

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(300):
            stage.runner.call(nothing())
        return (time.perf_counter() - start) / 300

    # The quickest of a few tries: other work on the machine is not what is measured.
    assert min(measure() for _ in range(5)) < 0.0005


def test_a_forked_child_fails_clearly_and_lets_go(stage: Stage) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        answer = b"no error"
        try:
            stage.sandbox.files.exists("/f")
        except SandboxError as error:
            answer = str(error).encode()
        finally:
            os.write(write, answer)
            os._exit(0)
    os.close(write)
    said = os.read(read, 1000).decode()
    os.close(read)
    os.waitpid(pid, 0)
    assert "forked child" in said
    # The parent's connection is as it was.
    stage.play(lambda agent: run_once(agent, b"still here"))
    assert stage.sandbox.commands.run("x").stdout == "still here"


def test_calls_from_the_loops_own_thread_are_refused(stage: Stage) -> None:
    async def inside() -> None:
        stage.sandbox.files.exists("/f")

    with pytest.raises(SandboxError, match="AsyncSandbox"):
        stage.runner.call(inside())


def test_no_host_names_without_a_server(stage: Stage) -> None:
    with pytest.raises(CapabilityError, match=r"tunnel\(80\)"):
        stage.sandbox.get_host(80)


def test_import_is_light() -> None:
    code = (
        "import sys, fourwalls; fourwalls.__version__;"
        "print(*[m for m in ('asyncio', 'msgspec', 'fourwalls.sdk') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    code = (
        "import fourwalls, fourwalls.model.errors as e;"
        "assert fourwalls.Sandbox.__name__ == 'Sandbox';"
        "assert fourwalls.CommandExitError is e.CommandExitError;"
        "[getattr(fourwalls, name) for name in fourwalls.__all__]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_iterator_collected_in_the_thread_of_the_loop_is_closed_all_the_same() -> None:
    """The garbage collector runs where it likes; a follower that stays would stop the command."""
    runner = Runner()
    closed = threading.Event()

    async def pieces() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            closed.set()

    iterator = pieces()
    assert runner.call(iterator.__anext__()) == 1
    runner._loop.call_soon_threadsafe(runner.drop, iterator)
    assert closed.wait(5)
    runner.close()
