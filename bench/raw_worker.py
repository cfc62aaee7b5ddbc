"""A process that starts the raw runtime on a running sandbox's bundle.

It enters the mount namespace of a real sandbox's shim, so the raw runtime gets exactly the root
file system, config and flags of the product. It makes its own cgroups from the same limits, as
anyone who uses the runtime alone would. One JSON command a line comes in, one JSON answer goes out:
``{"count": n}`` starts n runs at once and answers with the seconds to the first output of each and
to the end of all.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from fourwalls.linux.cgroup import PERIOD_US
from fourwalls.linux.mountinfo import read_mounts

_CLONE_NEWNS = 0x20000
_PROGRAM = ["/.fourwalls/agent", "--version"]


def enter_mounts_of(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    if libc.setns(fd, _CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    os.close(fd)


class Raw:
    """Runs of one runtime. ``directory`` is the donor sandbox's."""

    def __init__(self, runtime: str, directory: Path, memory: int, pids: int, cpus: float) -> None:
        self._runtime = runtime
        self._donor = directory
        self._work = directory / "raw"
        self._work.mkdir()
        self._config: dict[str, Any] = json.loads((directory / "bundle/config.json").read_text())
        self._config["process"]["args"] = _PROGRAM
        self._config["linux"]["resources"] = {
            "memory": {"limit": memory},
            "pids": {"limit": pids},
            "cpu": {"quota": int(cpus * PERIOD_US), "period": PERIOD_US},
        }
        self._count = 0

    def prepare(self) -> tuple[list[str], Path]:
        """A fresh bundle: the command that runs it, and the directory to remove afterwards."""
        self._count += 1
        name = f"raw{os.getpid()}x{self._count}"
        bundle = self._work / name
        bundle.mkdir()
        config = dict(self._config)
        config["linux"] = {**config["linux"], "cgroupsPath": f"/fourwalls-raw/{name}"}
        (bundle / "config.json").write_text(json.dumps(config))
        if self._runtime == "crun":
            argv = [
                "crun",
                "--root",
                str(self._work / "root"),
                "run",
                "--bundle",
                str(bundle),
                name,
            ]
        else:
            changes = self._donor / "disk" / name
            changes.mkdir()
            argv = [
                "runsc", "--root", str(bundle / "root"), "--platform=systrap", "--network=none",
                f"--overlay2=root:dir={changes}", "--file-access=exclusive",
                "run", "--bundle", str(bundle), name,
            ]  # fmt: skip
        return argv, bundle

    def run(self, count: int) -> dict[str, Any]:
        prepared = [self.prepare() for _ in range(count)]
        firsts: list[float] = [0.0] * count
        started = time.perf_counter()

        def one(number: int) -> None:
            argv, _ = prepared[number]
            begun = time.perf_counter()
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            assert process.stdout
            first = os.read(process.stdout.fileno(), 1)
            firsts[number] = time.perf_counter() - begun
            _, errors = process.communicate()
            if not first or process.returncode:
                raise RuntimeError(f"{argv}: {errors.decode(errors='replace')}")

        if count == 1:
            one(0)
        else:
            threads = [threading.Thread(target=one, args=(n,)) for n in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        wall = time.perf_counter() - started
        for _, bundle in prepared:
            shutil.rmtree(bundle, ignore_errors=True)
        return {"first_output_s": firsts, "wall_s": wall}


def main() -> None:
    runtime, pid, directory, memory, pids, cpus = sys.argv[1:]
    enter_mounts_of(int(pid))
    raw = Raw(runtime, Path(directory), int(memory), int(pids), float(cpus))
    for line in sys.stdin:
        print(json.dumps(raw.run(json.loads(line)["count"])), flush=True)
    shutil.rmtree(Path(directory) / "raw", ignore_errors=True)
    # The runtimes remove the groups they have made, and leave the parent of them.
    for mount in read_mounts():
        if mount.fstype.startswith("cgroup"):
            with contextlib.suppress(OSError):
                os.rmdir(f"{mount.target}/fourwalls-raw")


if __name__ == "__main__":
    main()
