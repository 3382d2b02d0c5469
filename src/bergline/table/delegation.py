"""Methods of a class that delegate to its parts, with the signature and docstring that they have there."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

_Handle = TypeVar("_Handle")
_Own = TypeVar("_Own")
_Part = TypeVar("_Part")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class Holder(Protocol[_Handle]):
    """A class whose parts all work on one handle."""

    _handle: _Handle


def delegated(
    part: Callable[[_Handle], _Part], method: Callable[Concatenate[_Part, _Arguments], _Result]
) -> Callable[Concatenate[Holder[_Handle], _Arguments], _Result]:
    """A method that returns the result of a part's method."""

    @functools.wraps(method)
    def call(holder: Holder[_Handle], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        return method(part(holder._handle), *args, **kwargs)  # noqa: SLF001

    return call


def chained(
    part: Callable[[_Handle], _Part], method: Callable[Concatenate[_Part, _Arguments], None]
) -> Callable[Concatenate[_Own, _Arguments], _Own]:
    """A method that runs a part's method and returns its own object, so that calls can be chained."""
    run = delegated(part, method)

    @functools.wraps(method)
    def call(own: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Any:
        run(own, *args, **kwargs)
        return own

    call.__annotations__["return"] = Self
    call.__signature__ = inspect.signature(method).replace(return_annotation=Self)  # type: ignore[attr-defined]
    return call
