"""``-e NAME=VALUE``."""

from __future__ import annotations

import os
from collections.abc import Iterable

from fourwalls.model.errors import InvalidArgumentError
from fourwalls.model.sandbox import check_envs


def parse_environment(given: Iterable[str]) -> dict[str, str]:
    """``NAME=VALUE`` as it says; a bare ``NAME`` takes the value this process has."""
    found: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals:
            own = os.environ.get(name)
            if own is None:
                raise InvalidArgumentError(
                    f"environment variable {name!r} is not set here; write NAME=VALUE"
                )
            value = own
        found[name] = value
    return check_envs(found)
