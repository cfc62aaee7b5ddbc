"""Room for disks: a host that cannot hold what it would promise refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourwalls.host import disks
from fourwalls.linux.places import Places
from fourwalls.model.errors import LimitError


def test_a_host_without_room_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places(tmp_path / "run", tmp_path / "state")
    monkeypatch.setattr(disks, "free_bytes", lambda _: 95 << 20)
    with pytest.raises(LimitError, match=r"95 MiB left .* may grow to 4096 MiB") as caught:
        disks.check_room(places, 4 << 30)
    assert caught.value.remedy
    disks.check_room(places, 95 << 20)
