"""Files behave the same behind every boundary."""

from __future__ import annotations

import asyncio
import io

import pytest

from fourwalls import (
    AsyncSandbox,
    InvalidArgumentError,
    PathIsADirectoryError,
    PathNotADirectoryError,
    PathNotFoundError,
)


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 5000])
async def test_bytes_survive(sandbox: AsyncSandbox, data: bytes) -> None:
    await sandbox.files.write("/home/user/dir/sub/file", data)
    assert await sandbox.files.read("/home/user/dir/sub/file", format="bytes") == data


async def test_text_and_owner(sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("notes.txt", "schöne Grüße\n")
    assert await sandbox.files.read("~/notes.txt") == "schöne Grüße\n"
    shown = await sandbox.commands.run("stat -c '%U %G %a' ~/notes.txt")
    assert shown.stdout == "user user 644\n"


async def test_streams_in_and_out(sandbox: AsyncSandbox) -> None:
    size = 24 * 1024 * 1024
    await sandbox.files.write("/tmp/big", io.BytesIO(b"\x5a" * size))
    received = 0
    async for chunk in await sandbox.files.read("/tmp/big", format="stream"):
        assert chunk.count(b"\x5a") == len(chunk)
        received += len(chunk)
    assert received == size


async def test_list_info_exists_rename_remove(sandbox: AsyncSandbox) -> None:
    files = sandbox.files
    assert await files.make_dir("/tmp/d/e")
    assert not await files.make_dir("/tmp/d/e")
    await files.write("/tmp/d/b", "12345")
    await files.write("/tmp/d/a", "")
    await sandbox.commands.run("ln -s b /tmp/d/link")
    assert [entry.name for entry in await files.list("/tmp/d")] == ["a", "b", "e", "link"]
    info = await files.get_info("/tmp/d/b")
    assert (info.size, info.owner, info.path) == (5, "user", "/tmp/d/b")
    await files.rename("/tmp/d/b", "/tmp/d/c")
    assert not await files.exists("/tmp/d/b")
    assert await files.exists("/tmp/d/c")
    await files.remove("/tmp/d")
    assert not await files.exists("/tmp/d")


async def test_depth(sandbox: AsyncSandbox) -> None:
    await sandbox.commands.run("mkdir -p /tmp/t/b/c /tmp/t/a; touch /tmp/t/b/c/deep /tmp/t/b/x")
    shallow = [entry.path for entry in await sandbox.files.list("/tmp/t")]
    assert shallow == ["/tmp/t/a", "/tmp/t/b"]
    deep = [entry.path for entry in await sandbox.files.list("/tmp/t", depth=9)]
    assert deep == [
        "/tmp/t/a",
        "/tmp/t/b",
        "/tmp/t/b/c",
        "/tmp/t/b/c/deep",
        "/tmp/t/b/x",
    ]


async def test_errors_say_what_is_wrong(sandbox: AsyncSandbox) -> None:
    files = sandbox.files
    with pytest.raises(PathNotFoundError):
        await files.read("/no/such")
    with pytest.raises(PathNotFoundError):
        await files.list("/no/such")
    with pytest.raises(PathNotADirectoryError):
        await files.list("/etc/passwd")
    with pytest.raises(PathIsADirectoryError):
        await files.read("/etc")
    with pytest.raises(PathIsADirectoryError):
        await files.write("/etc", "x")
    for path in ("", "/tmp/\0x", "/tmp/" + "n" * 5000):
        with pytest.raises(InvalidArgumentError):
            await files.write(path, "x")
    assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"


async def test_names_that_are_not_utf8(sandbox: AsyncSandbox) -> None:
    await sandbox.commands.run(["python3", "-c", "open(b'/tmp/odd\\xff\\n name', 'w').write('x')"])
    (entry,) = [e for e in await sandbox.files.list("/tmp") if e.name.startswith("odd")]
    assert entry.name == "odd\udcff\n name"
    assert await sandbox.files.read(entry.path) == "x"


async def test_paths_with_dots_stay_inside_the_sandbox(sandbox: AsyncSandbox) -> None:
    assert await sandbox.files.read("/../../../etc/hostname") == await sandbox.files.read(
        "/etc/hostname"
    )


async def test_watch(sandbox: AsyncSandbox) -> None:
    await sandbox.files.make_dir("/tmp/w")
    watch = await sandbox.files.watch_dir("/tmp/w", recursive=True)
    await sandbox.files.write("/tmp/w/new", "x")
    await sandbox.commands.run(
        "mkdir /tmp/w/sub; sleep 0.2; echo y > /tmp/w/sub/deep; rm /tmp/w/new"
    )
    await asyncio.sleep(0.5)
    events = [(event.type.value, event.name) for event in watch.get_new_events()]
    await watch.stop()
    assert events[0] == ("create", "new")
    assert ("write", "new") in events
    assert ("create", "sub") in events
    assert any(name == "sub/deep" for _, name in events)
    assert ("remove", "new") in events


async def test_files_written_are_seen_by_commands_and_back(sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("/tmp/script.sh", "echo $((6*7)) > /tmp/answer\n")
    await sandbox.commands.run("sh /tmp/script.sh")
    assert await sandbox.files.read("/tmp/answer") == "42\n"
