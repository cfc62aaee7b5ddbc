"""The undo stack."""

from __future__ import annotations

import pytest

from fourwalls.linux.scope import Scope


def test_releases_in_reverse_and_once() -> None:
    done: list[int] = []
    scope = Scope()
    with scope:
        for number in range(3):
            scope.add(str(number), lambda number=number: done.append(number))  # type: ignore[misc]
    scope.close()
    assert done == [2, 1, 0]


def test_every_release_is_tried_and_errors_name_what_failed() -> None:
    done: list[str] = []

    def fail() -> None:
        raise OSError("busy")

    scope = Scope()
    scope.add("first", lambda: done.append("first"))
    scope.add("the mount", fail)
    scope.add("last", lambda: done.append("last"))
    with pytest.raises(ExceptionGroup) as caught:
        scope.close()
    assert done == ["last", "first"]
    assert caught.value.exceptions[0].__notes__ == ["while releasing the mount"]


def test_late_registration_is_released_at_once() -> None:
    done: list[str] = []
    scope = Scope()
    scope.close()
    scope.add("late", lambda: done.append("late"))
    assert done == ["late"]


def test_forget_gives_ownership_away() -> None:
    done: list[str] = []
    with Scope() as scope:
        scope.add("kept", lambda: done.append("kept"))
        scope.forget()
    assert done == []
