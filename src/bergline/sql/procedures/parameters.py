"""The values that `spark.sql(…, args)` gives for `:name` and `?` in a CALL."""

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from bergline.arguments import shown
from bergline.errors import InvalidInputError
from bergline.sql.statements.statements import CallProcedure, Moment, SqlParameter


def bind_parameters(call: CallProcedure, args: Any) -> CallProcedure:
    """The call with values in place of its parameters; one that none is given for is the call's `error`."""
    if call.error is not None:
        return call
    by_place = iter(args) if isinstance(args, list | tuple) else iter(())
    by_name = args if isinstance(args, Mapping) else {}
    try:
        positional = tuple(_bound(value, by_name, by_place) for value in call.positional)
        named = {name: _bound(value, by_name, by_place) for name, value in call.named.items()}
    except InvalidInputError as error:
        return CallProcedure(call.procedure, error=error)
    return msgspec.structs.replace(call, positional=positional, named=named)


def _bound(value: Any, by_name: Mapping[str, Any], by_place: Iterator[Any]) -> Any:
    match value:
        case SqlParameter(None):
            for given in by_place:
                return _plain(given, "`?`")
            raise InvalidInputError("expected a value in `args` for each `?`, found too few")
        case SqlParameter(str() as name):
            if name not in by_name:
                raise InvalidInputError(f"expected a value in `args` for `:{name}`, found none")
            return _plain(by_name[name], f"`:{name}`")
        case tuple():
            return tuple(_bound(item, by_name, by_place) for item in value)
        case dict():
            return {_bound(k, by_name, by_place): _bound(v, by_name, by_place) for k, v in value.items()}
    return value


def _plain(value: Any, place: str) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case dt.datetime():
            return Moment(value)
        case dt.date():
            return Moment(dt.datetime.combine(value, dt.time()))
        case list() | tuple():
            return tuple(_plain(item, place) for item in value)
    raise InvalidInputError(
        f"expected text, a whole number, True, False, None, a time or a list for {place}, found {shown(value)}"
    )
