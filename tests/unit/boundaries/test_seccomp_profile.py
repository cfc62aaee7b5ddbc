"""The seccomp profile: an allow-list that never lets a refused call through."""

from __future__ import annotations

from fourwalls.boundaries.oci.seccomp_profile import ALLOWED, REFUSED, seccomp_profile


def test_nothing_is_both_allowed_and_refused() -> None:
    assert not set(ALLOWED) & set(REFUSED)


def test_conditional_calls_are_not_allowed_outright() -> None:
    assert not set(ALLOWED) & {"clone", "clone3", "socket", "personality"}


def test_the_default_is_a_refusal_that_makes_libraries_fall_back() -> None:
    profile = seccomp_profile("x86_64")
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert profile["defaultErrnoRet"] == 38
    assert profile["architectures"] == ["SCMP_ARCH_X86_64"]


def test_namespaces_cannot_be_made_by_clone() -> None:
    (rule,) = [r for r in seccomp_profile("x86_64")["syscalls"] if r["names"] == ["clone"]]
    (condition,) = rule["args"]
    assert condition["op"] == "SCMP_CMP_MASKED_EQ"
    assert condition["valueTwo"] == 0
    for flag in (0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x20000):
        assert condition["value"] & flag, hex(flag)


def test_of_netlink_only_routes_are_left() -> None:
    rules = [r for r in seccomp_profile("x86_64")["syscalls"] if r["names"] == ["socket"]]
    values = [[(arg["index"], arg["value"]) for arg in rule["args"]] for rule in rules]
    assert values == [[(0, 1)], [(0, 2)], [(0, 10)], [(0, 16), (2, 0)]]


def test_the_number_of_reachable_calls_is_known() -> None:
    # A change of this number is a change of the wall: say why in the commit.
    assert len(ALLOWED) == 296
