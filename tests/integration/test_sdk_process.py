"""The SDK over real sandboxes: the end of the interpreter, forks, threads."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time

from fourwalls import Sandbox, SandboxError
from fourwalls.model.boundary import Boundary

END = """
    import threading
    from fourwalls import Sandbox

    sandbox = Sandbox.create(boundary=%r)
    handle = sandbox.commands.run("sleep 100", background=True)
    watch = sandbox.files.watch_dir("/tmp")
    pieces = iter(sandbox.files.read("/dev/zero", "stream"))
    next(pieces)
    threading.Thread(target=lambda: list(handle), daemon=True).start()
    print(sandbox.sandbox_id)
"""


def _gone(sandbox_id: str) -> bool:
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        if sandbox_id not in [info.sandbox_id for info in Sandbox.list()]:
            return True
        time.sleep(0.05)
    return False


def test_the_end_of_the_interpreter_ends_sandboxes_without_a_word(boundary: Boundary) -> None:
    code = textwrap.dedent(END % boundary.value)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert _gone(done.stdout.strip())


def test_a_forked_child_neither_uses_nor_keeps_the_sandbox(boundary: Boundary) -> None:
    with Sandbox.create(boundary=boundary.value) as sandbox:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            said = b"no error"
            try:
                sandbox.commands.run("true")
            except SandboxError as error:
                said = str(error).encode()
            finally:
                os.write(write, said)
                os.close(write)
                # Outlives its parent's use of the sandbox.
                time.sleep(2)
                os._exit(0)
        os.close(write)
        assert b"forked child" in os.read(read, 1000)
        os.close(read)
        assert sandbox.commands.run("echo still here").stdout == "still here\n"
        sandbox.detach()
        assert _gone(sandbox.sandbox_id)
        os.waitpid(pid, 0)


def test_threads_share_a_sandbox(boundary: Boundary) -> None:
    with Sandbox.create(boundary=boundary.value) as sandbox:
        outputs: list[str] = []

        def work(number: int) -> None:
            for turn in range(3):
                outputs.append(sandbox.commands.run(["echo", f"{number}-{turn}"]).stdout)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(outputs) == sorted(f"{n}-{turn}\n" for n in range(8) for turn in range(3))
