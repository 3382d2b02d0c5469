"""CALL: procedures with positional or named arguments that are literals or parameters."""

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from bergline.arguments import shown
from bergline.errors import InvalidInputError, NotFoundError, SqlSyntaxError, near_names
from bergline.lake.lake import Lake
from bergline.sql.names.resolve import Lakes
from bergline.sql.procedures.procedure import Parameter, Procedure
from bergline.sql.procedures.registry import PROCEDURES
from bergline.sql.statements.statement import LakeStatement, StatementKind
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.timestamps import Moment, in_zone, parse_moment
from bergline.sql.text.tokens import Name, TokenKind, syntax_error

_SYSTEM = "system"
_TWICE = "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT"


class SqlParameter(msgspec.Struct, frozen=True):
    """`:name`, or None for `?`: a value that comes with the statement."""

    name: str | None


class CallProcedure(LakeStatement, frozen=True):
    """CALL […].system.procedure(…); values are text, numbers, booleans, Moment, SqlParameter, tuples or mappings.

    `error` says why the call could not be read: it counts only if the procedure is ours, or has no name.
    """

    procedure: Name
    positional: tuple[Any, ...] = ()
    named: dict[str, Any] = msgspec.field(default_factory=dict)
    error: InvalidInputError | None = None


def parse_call(cursor: Cursor) -> CallProcedure:
    """Parse what follows CALL; an error in the call is kept in it."""
    start = cursor.token.start
    try:
        procedure = cursor.expect_dotted_name("a procedure like `system.fast_forward`")
    except SqlSyntaxError as error:
        return CallProcedure((), error=error)
    if procedure[-2:-1] and procedure[-2].lower() != _SYSTEM and near_names(procedure[-2], [_SYSTEM]):
        text = cursor.sql.text
        place = text.index(procedure[-2], start)
        return CallProcedure(
            procedure, error=syntax_error(text, place, f"expected `{_SYSTEM}`, found `{procedure[-2]}`", [_SYSTEM])
        )
    try:
        return _arguments(cursor, procedure)
    except InvalidInputError as error:
        return CallProcedure(procedure, error=error)


def _arguments(cursor: Cursor, procedure: Name) -> CallProcedure:
    cursor.expect_symbol("(")
    positional: list[Any] = []
    named: dict[str, Any] = {}
    while not cursor.accept_symbol(")"):
        if positional or named:
            cursor.expect_symbol(",")
        name = _argument_name(cursor)
        if name is None:
            if named:
                cursor.fail("a named argument after named ones", condition="UNEXPECTED_POSITIONAL_ARGUMENT")
            positional.append(_value(cursor))
        elif name in named:
            message = f"expected argument `{name}` once, found it twice"
            raise InvalidInputError(message, condition=f"{_TWICE}.DOUBLE_NAMED_ARGUMENT_REFERENCE")
        else:
            named[name] = _value(cursor)
    cursor.expect_end()
    return CallProcedure(procedure, tuple(positional), named)


def _argument_name(cursor: Cursor) -> str | None:
    """The name before `=>`, if there is one."""
    if cursor.token.kind not in {TokenKind.WORD, TokenKind.QUOTED} or not cursor.following.is_symbol("=>"):
        return None
    name = cursor.advance().value.lower()
    cursor.advance()
    return name


def _value(cursor: Cursor) -> Any:
    negative = cursor.accept_symbol("-")
    token = cursor.token
    if token.kind is TokenKind.NUMBER:
        cursor.advance()
        number = int(token.text) if token.text.isdecimal() else Decimal(token.text)
        return -number if negative else number
    if negative:
        cursor.fail("a number")
    if token.kind is TokenKind.STRING:
        return cursor.advance().value
    if token.is_word("TRUE", "FALSE"):
        return cursor.advance().is_word("TRUE")
    if token.is_word("NULL"):
        cursor.advance()
        return None
    if cursor.accept("TIMESTAMP") or cursor.accept("DATE"):
        return Moment(parse_moment(cursor.advance().value if cursor.token.kind is TokenKind.STRING else ""))
    if cursor.accept("NOW") or cursor.accept("CURRENT_TIMESTAMP"):
        if cursor.accept_symbol("("):
            cursor.expect_symbol(")")
        return Moment(None)
    if cursor.accept_symbol("?"):
        return SqlParameter(None)
    if token.is_symbol(":") and cursor.following.kind is TokenKind.WORD:
        cursor.advance()
        return SqlParameter(cursor.advance().text)
    if cursor.accept("ARRAY"):
        return _array(cursor)
    if cursor.accept("MAP"):
        return _map(cursor)
    return cursor.fail("text, a number, true, false, null, TIMESTAMP '…', now(), array(…), map(…), `:name` or `?`")


def _array(cursor: Cursor) -> tuple[Any, ...]:
    cursor.expect_symbol("(")
    values: list[Any] = []
    while not cursor.accept_symbol(")"):
        if values:
            cursor.expect_symbol(",")
        values.append(_value(cursor))
    return tuple(values)


def _map(cursor: Cursor) -> dict[Any, Any]:
    """Alternating keys and values."""
    values = _array(cursor)
    if len(values) % 2 or any(isinstance(key, dict) for key in values[::2]):
        raise InvalidInputError(f"expected keys and values in turn in map(…), found {len(values)} values")
    return dict(zip(values[::2], values[1::2], strict=True))


def bind_parameters(call: CallProcedure, args: Any) -> CallProcedure:
    """The call with values bound to its parameters; a missing value becomes the call's `error`."""
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


def run_call(call: CallProcedure, lakes: Lakes) -> pa.Table | None:
    """Run a procedure and return its rows; None if it belongs to another catalog."""
    if not call.procedure and call.error is not None:
        raise call.error
    *prefix, name = (part.lower() for part in call.procedure)
    if prefix != ["system"] and not (prefix[1:] == ["system"] and lakes.has(call.procedure[0])):
        is_ours = len(prefix) == 1 or (len(prefix) > 1 and lakes.has(call.procedure[0]))
        if is_ours and name in PROCEDURES and isinstance(call.error, SqlSyntaxError):
            raise call.error  # a typo in `system`
        if prefix or name not in PROCEDURES:
            return None
        raise NotFoundError(
            f"no procedure `{name}`",
            kind="procedure",
            name=name,
            hints=[f"procedures are called as `CALL system.{name}(…)`"],
        )
    if call.error is not None:
        raise call.error
    procedure = PROCEDURES.get(name)
    if procedure is None:
        raise NotFoundError(
            f"no procedure `system.{name}`",
            kind="procedure",
            name=name,
            known=PROCEDURES,
            hints=[f"there are {', '.join(PROCEDURES)}"],
        )
    arguments = _bind(name, procedure, call)
    values = {
        p.name: _convert(name, p, arguments[p.name], lakes.engine.time_zone)
        for p in procedure.parameters
        if p.name in arguments
    }
    if procedure.needs_engine:
        values["engine"] = lakes.engine
    lakes = lakes if prefix == ["system"] else lakes.within(call.procedure[0])
    if procedure.makes_table:
        return procedure.run(*lakes.place_text(values.pop("table")), **values)
    if procedure.of_lake:
        return procedure.run(_of_lake(lakes, values), **values)
    target = lakes.resolve_text(values.pop("table"), on_branch=procedure.on_branch)
    if target.selector.branch is not None and values.setdefault("branch", target.selector.branch) != (
        target.selector.branch
    ):
        raise InvalidInputError(
            f"expected one branch, found `{target.selector.branch}` in the table's name and `{values['branch']}`"
        )
    return procedure.run(target.table, **values)


def _of_lake(lakes: Lakes, values: dict[str, Any]) -> Lake:
    """The lake that a call is about: that of its table, which gets its whole name, or the default one."""
    if "table" not in values:
        return lakes.default
    lake, _ = lakes.place_text(values["table"])
    values["table"] = lakes.resolve_text(values["table"]).table.name
    return lake


def _bind(name: str, procedure: Procedure, call: CallProcedure) -> dict[str, Any]:
    names = [p.name for p in procedure.parameters]
    if len(call.positional) > len(names):
        message = f"expected up to {len(names)} arguments for `{name}`, found {len(call.positional)}"
        raise InvalidInputError(message, condition="WRONG_NUM_ARGS.WITHOUT_SUGGESTION")
    bound = dict(zip(names, call.positional, strict=False))
    for key, value in call.named.items():
        if key not in names:
            raise NotFoundError(f"no argument `{key}` of `{name}`", kind="argument", name=key, known=names)
        if key in bound:
            message = f"expected argument `{key}` of `{name}` once, found it twice"
            raise InvalidInputError(message, condition=f"{_TWICE}.BOTH_POSITIONAL_AND_NAMED")
        bound[key] = value
    for parameter in procedure.parameters:
        if parameter.required and bound.get(parameter.name) is None:
            message = f"expected argument `{parameter.name}` of `{name}`, found none"
            raise InvalidInputError(message, condition="REQUIRED_PARAMETER_NOT_FOUND")
    return {k: v for k, v in bound.items() if v is not None}


def _convert(procedure: str, parameter: Parameter, value: Any, time_zone: str) -> Any:
    match parameter.type, value:
        case ("string", str()) | ("boolean", bool()):
            return value
        case "int" | "bigint", int() if not isinstance(value, bool):
            return value
        case "array<bigint>", tuple() if all(isinstance(v, int) for v in value):
            return value
        case "array<string>", tuple() if all(isinstance(v, str) for v in value):
            return value
        case "map<string,string>", dict() if all(isinstance(v, str) for pair in value.items() for v in pair):
            return value
        case "timestamp", Moment(None):
            return dt.datetime.now(dt.UTC)
        case "timestamp", Moment(dt.datetime() as literal):
            return in_zone(literal, time_zone)
        case "timestamp", str():
            return in_zone(parse_moment(value), time_zone)
    found = str(value) if isinstance(value, Decimal) else repr(value)
    raise InvalidInputError(
        f"expected `{parameter.type}` for argument `{parameter.name}` of `{procedure}`, found {found}",
        condition="CAST_INVALID_INPUT" if isinstance(value, str) else "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
    )


def _ref_move(call: CallProcedure) -> str | None:
    name = call.procedure[-1] if call.procedure else ""
    procedure = PROCEDURES.get(name.lower())
    return f"CALL {name}" if procedure is not None and procedure.moves_refs else None


CALL = StatementKind(variants=(CallProcedure,), parsers={"CALL": parse_call}, run=run_call, ref_move=_ref_move)
