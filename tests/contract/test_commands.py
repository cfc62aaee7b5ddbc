"""Commands behave the same behind every boundary."""

from __future__ import annotations

import asyncio
import time

import pytest

from fourwalls import (
    AsyncSandbox,
    CommandExitError,
    CommandStartError,
    CommandTimeoutError,
    InvalidArgumentError,
    ProcessNotFoundError,
)


async def test_output_and_exit_code(sandbox: AsyncSandbox) -> None:
    result = await sandbox.commands.run("echo out; echo err >&2")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)


async def test_a_failure_is_an_error_with_everything_in_it(sandbox: AsyncSandbox) -> None:
    with pytest.raises(CommandExitError) as caught:
        await sandbox.commands.run("echo out; echo err >&2; exit 3")
    error = caught.value
    assert (error.exit_code, error.stdout, error.stderr, error.cause) == (
        3,
        "out\n",
        "err\n",
        "exited",
    )


async def test_death_by_signal(sandbox: AsyncSandbox) -> None:
    with pytest.raises(CommandExitError) as caught:
        await sandbox.commands.run("kill -TERM $$")
    assert (caught.value.signal, caught.value.cause) == (15, "signaled")


async def test_runs_as_the_templates_user_at_home_with_its_environment(
    sandbox: AsyncSandbox,
) -> None:
    result = await sandbox.commands.run(
        'id -un; pwd; echo "$HOME $USER $MODE $LANG"', envs={"MODE": "a b=c"}
    )
    user, directory, environment = result.stdout.splitlines()
    assert (user, directory) == ("user", "/home/user")
    assert environment == "/home/user user a b=c C.UTF-8"


async def test_root_when_asked(sandbox: AsyncSandbox) -> None:
    result = await sandbox.commands.run("id -u; pwd", user="root")
    assert result.stdout.split() == ["0", "/root"]


async def test_root_owns_its_files_and_changes_owners(sandbox: AsyncSandbox) -> None:
    script = "echo x > /etc/new && chown user /etc/new && stat -c %U /etc/new"
    assert (await sandbox.commands.run(script, user="root")).stdout == "user\n"


async def test_working_directory(sandbox: AsyncSandbox) -> None:
    assert (await sandbox.commands.run("pwd", cwd="/tmp")).stdout == "/tmp\n"


async def test_a_login_shell_starts_no_other_program(sandbox: AsyncSandbox) -> None:
    # It would cost more than the shell itself. Pids are given out one after the other.
    pids = [int((await sandbox.commands.run("echo $$")).stdout) for _ in range(5)]
    assert pids[-1] - pids[0] == 4, pids


async def test_a_login_shell_keeps_the_path_it_was_given(sandbox: AsyncSandbox) -> None:
    result = await sandbox.commands.run("echo $PATH", envs={"PATH": "/opt/bin:/usr/bin:/bin"})
    assert result.stdout == "/opt/bin:/usr/bin:/bin\n"


async def test_an_argument_list_runs_without_a_shell(sandbox: AsyncSandbox) -> None:
    result = await sandbox.commands.run(["printf", "%s|", "a b", "$HOME", "*"])
    assert result.stdout == "a b|$HOME|*|"


@pytest.mark.parametrize(
    ("arguments", "stage"),
    [
        ({"cmd": ["no-such-program"]}, "exec"),
        ({"cmd": ["/etc/passwd"]}, "exec"),
        ({"cmd": ["true"], "cwd": "/no/such/place"}, "cwd"),
        ({"cmd": ["true"], "user": "nobody-here"}, "user"),
    ],
)
async def test_did_not_start(
    sandbox: AsyncSandbox, arguments: dict[str, object], stage: str
) -> None:
    with pytest.raises(CommandStartError) as caught:
        await sandbox.commands.run(**arguments)  # type: ignore[arg-type]
    assert caught.value.stage == stage
    assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"


@pytest.mark.parametrize(
    "arguments",
    [
        {"cmd": ""},
        {"cmd": "echo \0"},
        {"cmd": []},
        {"cmd": "true", "envs": {"A=B": "1"}},
        {"cmd": "true", "envs": {"A": "\0"}},
        {"cmd": "true", "timeout": -1},
        {"cmd": "true", "timeout": float("nan")},
        {"cmd": "true", "cwd": "\0"},
        {"cmd": ["x"] * 1 + ["y" * (100 << 20)]},
    ],
)
async def test_bad_arguments_are_refused_before_anything_runs(
    sandbox: AsyncSandbox, arguments: dict[str, object]
) -> None:
    with pytest.raises(InvalidArgumentError):
        await sandbox.commands.run(**arguments)  # type: ignore[arg-type]


async def test_timeout_kills_the_whole_tree(sandbox: AsyncSandbox) -> None:
    script = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(1234)\n"
        "    os._exit(0)\n"
        "time.sleep(1234)\n"
    )
    started = time.monotonic()
    with pytest.raises(CommandTimeoutError):
        await sandbox.commands.run(["python3", "-c", script], timeout=1.5)
    assert time.monotonic() - started < 6
    listing = await sandbox.commands.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '", user="root")
    assert "time.sleep(1234)" not in listing.stdout


async def test_streaming_as_it_comes(sandbox: AsyncSandbox) -> None:
    seen: list[tuple[float, str]] = []
    await sandbox.commands.run(
        "for i in 1 2 3; do echo $i; sleep 0.3; done",
        on_stdout=lambda text: seen.append((time.monotonic(), text)),
    )
    assert "".join(text for _, text in seen) == "1\n2\n3\n"
    assert seen[-1][0] - seen[0][0] > 0.4


async def test_background_input_and_wait(sandbox: AsyncSandbox) -> None:
    handle = await sandbox.commands.run("cat", background=True, stdin=True)
    await handle.send_stdin("über\n")
    await handle.close_stdin()
    result = await handle.wait()
    assert result.stdout == "über\n"


async def test_background_kill_and_list(sandbox: AsyncSandbox) -> None:
    handle = await sandbox.commands.run("sleep 1000", background=True)
    assert handle.pid in [process.pid for process in await sandbox.commands.list()]
    assert await sandbox.commands.kill(handle.pid)
    with pytest.raises(CommandExitError):
        await handle.wait()
    assert handle.pid not in [process.pid for process in await sandbox.commands.list()]
    assert not await sandbox.commands.kill(handle.pid)


async def test_attach_to_a_running_command(sandbox: AsyncSandbox) -> None:
    first = await sandbox.commands.run(
        "echo before; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo after", background=True
    )
    await first.disconnect()
    second = await sandbox.commands.connect(first.pid)
    await sandbox.files.write("/tmp/go", "")
    result = await second.wait()
    assert "after\n" in result.stdout


async def test_attach_to_what_does_not_exist(sandbox: AsyncSandbox) -> None:
    with pytest.raises(ProcessNotFoundError):
        await (await sandbox.commands.connect(999_999)).wait()


async def test_many_at_once_do_not_mix(sandbox: AsyncSandbox) -> None:
    results = await asyncio.gather(
        *(sandbox.commands.run(f"for i in $(seq 50); do echo {n}; done") for n in range(20))
    )
    for number, result in enumerate(results):
        assert result.stdout == f"{number}\n" * 50


async def test_a_flood_in_one_command_starves_no_other(sandbox: AsyncSandbox) -> None:
    flood = await sandbox.commands.run("yes", background=True)
    try:
        started = time.monotonic()
        for _ in range(5):
            assert (await sandbox.commands.run("echo ok")).stdout == "ok\n"
        assert time.monotonic() - started < 5
    finally:
        await flood.kill()


async def test_large_output_arrives_whole(sandbox: AsyncSandbox) -> None:
    size = 32 * 1024 * 1024
    received = 0

    def count(text: str) -> None:
        nonlocal received
        received += len(text)

    await sandbox.commands.run(f"head -c {size} /dev/zero | tr '\\0' x", on_stdout=count)
    assert received == size


async def test_output_kept_is_bounded_and_says_what_was_dropped(sandbox: AsyncSandbox) -> None:
    result = await sandbox.commands.run(
        "head -c 3000000 /dev/zero | tr '\\0' x", output_limit=1_000_000
    )
    assert len(result.stdout) <= 1_000_000
    assert len(result.stdout) + result.stdout_dropped == 3_000_000


async def test_bytes_that_are_not_utf8_are_replaced_and_characters_never_split(
    sandbox: AsyncSandbox,
) -> None:
    result = await sandbox.commands.run(
        ["python3", "-c", "import sys; sys.stdout.buffer.write(b'\\xff' + '€'.encode() * 100000)"]
    )
    assert result.stdout == "\N{REPLACEMENT CHARACTER}" + "€" * 100_000


async def test_an_open_stdin_hangs_nothing(sandbox: AsyncSandbox) -> None:
    assert (await sandbox.commands.run("cat; echo done")).stdout == "done\n"


async def test_a_background_child_keeps_no_command_from_ending(sandbox: AsyncSandbox) -> None:
    started = time.monotonic()
    result = await sandbox.commands.run("sleep 30 & echo started")
    assert result.stdout == "started\n"
    assert time.monotonic() - started < 10


async def test_zombies_are_reaped(sandbox: AsyncSandbox) -> None:
    await sandbox.commands.run("for i in $(seq 20); do (setsid sh -c 'exit 0' &) ; done; sleep 0.5")
    states = await sandbox.commands.run(
        "for f in /proc/[0-9]*/stat; do cut -d')' -f2 $f; done 2>/dev/null | awk '{print $1}'"
    )
    assert "Z" not in states.stdout.split()
