"""What `setup` decides, from what it has looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourwalls.host import apt
from fourwalls.host.distribution import Distribution, read_distribution
from fourwalls.host.setup import HostState, SetupPlan, make_plan
from fourwalls.model.errors import BoundaryUnavailableError

_BOOKWORM = Distribution("debian", "12", "Debian GNU/Linux 12 (bookworm)")
_TRIXIE = Distribution("debian", "13", "Debian GNU/Linux 13 (trixie)")
_FEDORA = Distribution("fedora", "40", "Fedora Linux 40")
_MIRROR = "http://mirror.example/debian"


def _state(
    distribution: Distribution,
    packages: tuple[str, ...] = (),
    *,
    modules: tuple[str, ...] = (),
    has_base: bool = True,
    has_backports: bool = False,
) -> HostState:
    return HostState(distribution, packages, modules, has_base, has_backports, _MIRROR)


@pytest.mark.parametrize("distribution", [_BOOKWORM, _TRIXIE, _FEDORA])
def test_nothing_to_do(distribution: Distribution) -> None:
    plan = make_plan(_state(distribution))
    assert not plan
    assert plan.describe() == []


def test_debian_13_has_it_all() -> None:
    plan = make_plan(_state(_TRIXIE, ("crun", "runsc")))
    assert plan == SetupPlan(packages=("crun", "runsc"))


def test_debian_12_takes_runsc_from_backports() -> None:
    plan = make_plan(_state(_BOOKWORM, ("crun", "runsc"), modules=("erofs",), has_base=False))
    source = plan.files[apt.SOURCE_FILE]
    assert f"URIs: {_MIRROR}\nSuites: bookworm-backports\nComponents: main\n" in source
    assert plan.files[apt.PIN_FILE] == (
        "Explanation: written by 'fourwalls setup'; only these come from bookworm-backports\n"
        "Package: runsc\nPin: release n=bookworm-backports\nPin-Priority: 500\n"
        "\n"
        "Package: *\nPin: release n=bookworm-backports\nPin-Priority: 100\n"
    )
    assert plan.describe() == [
        "write /etc/apt/sources.list.d/fourwalls-backports.sources",
        "write /etc/apt/preferences.d/fourwalls",
        "install crun runsc (apt-get)",
        "load the kernel module erofs",
        "build the template base (about a minute)",
    ]


def test_backports_are_not_added_twice() -> None:
    plan = make_plan(_state(_BOOKWORM, ("runsc",), has_backports=True))
    assert list(plan.files) == [apt.PIN_FILE]


def test_backports_are_not_added_in_vain() -> None:
    assert make_plan(_state(_BOOKWORM, ("crun", "skopeo"))).files == {}


def test_elsewhere_it_says_what_is_needed() -> None:
    with pytest.raises(BoundaryUnavailableError) as caught:
        make_plan(_state(_FEDORA, ("crun", "runsc", "mmdebstrap")))
    assert "this is Fedora Linux 40" in caught.value.message
    for words in ("crun >= 1.8 (crun", "runsc >= 20240729", "mmdebstrap (mmdebstrap: building"):
        assert words in caught.value.message


def test_distribution(tmp_path: Path) -> None:
    file = tmp_path / "os-release"
    file.write_text('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n\n#')
    assert read_distribution(file) == _BOOKWORM
    assert _BOOKWORM.known
    assert not _FEDORA.known
    assert read_distribution(tmp_path / "none").pretty_name == "unknown"


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("sources.list.d/a.list", "deb http://d/debian bookworm-backports main", True),
        (
            "sources.list.d/a.list",
            "deb [ signed-by=/x ] http://d/debian bookworm-backports m",
            True,
        ),
        ("sources.list.d/a.list", "#deb http://d/debian bookworm-backports main", False),
        ("sources.list.d/a.list", "deb-src http://d/debian bookworm-backports main", False),
        ("sources.list.d/a.list", "deb http://d/debian bookworm main", False),
        ("sources.list.d/a.txt", "deb http://d/debian bookworm-backports main", False),
        (
            "sources.list.d/a.sources",
            "Types: deb\nURIs: http://d/debian\nSuites: bookworm\n bookworm-backports\n",
            True,
        ),
        (
            "sources.list.d/a.sources",
            "Types: deb\nSuites: bookworm\n\nTypes: deb\nSuites: bookworm-backports",
            True,
        ),
        (
            "sources.list.d/a.sources",
            "Enabled: no\nTypes: deb\nSuites: bookworm-backports\n",
            False,
        ),
        ("sources.list.d/a.sources", "Types: deb-src\nSuites: bookworm-backports\n", False),
    ],
)
def test_suites(tmp_path: Path, name: str, text: str, found: bool) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / name).write_text(text)
    assert apt.has_suite("bookworm-backports", tmp_path) is found


def test_source_without_a_keyring(tmp_path: Path) -> None:
    assert "Signed-By" not in apt.backports_source("x-backports", _MIRROR, tmp_path / "none")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("dlstatus:1:50.0:Retrieving file 1 of 2\n", ("Retrieving file 1 of 2", 0.25)),
        ("pmstatus:crun:100.0:Installed crun (amd64)\n", ("Installed crun (amd64)", 1.0)),
        ("pmstatus:libc6:i386:12:x", None),
        ("Reading package lists...", None),
        ("pmstatus:x", None),
    ],
)
def test_status_lines(line: str, told: tuple[str, float] | None) -> None:
    assert apt.parse_status(line) == told
