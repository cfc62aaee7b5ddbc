"""The options every verb that makes a sandbox has, and the request they amount to."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from fourwalls.cli import complete
from fourwalls.model.boundary import Boundary
from fourwalls.model.sizes import SIZES, resources

if TYPE_CHECKING:
    from fourwalls.model.sandbox import CreateRequest

_BOUNDARIES = [boundary.value for boundary in Boundary]
_UNITS = {"": 1, "M": 1, "G": 1024, "T": 1024 * 1024}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([MGT]?)(?:i?B)?", re.IGNORECASE)

Function = TypeVar("Function", bound=Callable[..., Any])


class SandboxOptions(TypedDict):
    """What the options below bring to a verb, under these names."""

    boundary: str
    min_boundary: str | None
    template: str
    size: str
    cpus: float | None
    memory: int | None
    disk: int | None
    pids: int | None


class Mebibytes(click.ParamType[int]):
    """A number of MiB, or one with a unit: 512, 512M, 2G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a size: a number of MiB, or like 512M or 2G", param, ctx)
        return round(float(match[1]) * _UNITS[match[2].upper()])


def sandbox_options(function: Function) -> Function:
    """Add them to a verb, which gets them as keyword arguments (:class:`SandboxOptions`)."""
    memory = Mebibytes()
    options = [
        click.option("-b", "--boundary", type=click.Choice(["auto", *_BOUNDARIES]), default="auto",
                     show_default=True, help="The wall around the sandbox."),
        click.option("--min-boundary", type=click.Choice(_BOUNDARIES),
                     help="The weakest that 'auto' may take.  [default: gvisor]"),
        click.option("-t", "--template", default="base", show_default=True, metavar="NAME",
                     shell_complete=complete.templates, help="What the sandbox starts from."),
        click.option("-s", "--size", type=click.Choice(list(SIZES)), default="small",
                     show_default=True, help="CPUs, memory, disk and processes together."),
        click.option("--cpus", type=float, metavar="N", help="CPUs, 0.5 for a half."),
        click.option("--memory", type=memory, metavar="SIZE", help="Memory: 512M, 2G."),
        click.option("--disk", type=memory, metavar="SIZE", help="Disk: 512M, 2G."),
        click.option("--pids", type=int, metavar="N", help="Processes and threads."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def create_request(
    given: SandboxOptions,
    *,
    lease: float,
    envs: dict[str, str] | None = None,
    detach: bool = False,
) -> CreateRequest:
    """The request for these options; :class:`InvalidArgumentError` says what is allowed."""
    from fourwalls.model.sandbox import MAX_TIMEOUT_S, CreateRequest, check_timeout

    floor = given["min_boundary"]
    return CreateRequest(
        template=given["template"],
        boundary=None if given["boundary"] == "auto" else Boundary.parse(given["boundary"]),
        min_boundary=None if floor is None else Boundary.parse(floor),
        resources=resources(
            given["size"],
            cpus=given["cpus"],
            memory_mib=given["memory"],
            disk_mib=given["disk"],
            pids=given["pids"],
        ),
        timeout_s=check_timeout(min(lease, MAX_TIMEOUT_S)),
        envs=envs or {},
        detach=detach,
    )
