"""Turns a method of an async class into one that waits, with the same signature."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from fourwalls.sdk.synchronous.runner import Runner

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Inner = TypeVar("Inner")


class Facade(Generic[Inner]):
    """An async object and the runner that works it."""

    def __init__(self, inner: Inner, runner: Runner) -> None:
        self._inner = inner
        self._runner = runner


class Blocking(Generic[Arguments, Result]):
    """``name = Blocking(AsyncThing.name)`` in a :class:`Facade` of an ``AsyncThing``."""

    def __init__(
        self, method: Callable[Concatenate[Any, Arguments], Coroutine[Any, Any, Result]]
    ) -> None:
        self._method = method
        self.__doc__ = method.__doc__
        self.__wrapped__ = method

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...

    @overload
    def __get__(self, instance: Facade[Any], owner: type[Any]) -> Callable[Arguments, Result]: ...

    def __get__(
        self, instance: Facade[Any] | None, owner: type[Any]
    ) -> Self | Callable[Arguments, Result]:
        if instance is None:
            return self
        method, inner, runner = self._method, instance._inner, instance._runner

        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            return runner.call(method(inner, *args, **kwargs))

        call.__doc__ = self.__doc__
        return call
