"""`CALL system.…`: procedures with the parameters and columns of the official runtime."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from bergline.errors import InvalidInputError, NotFoundError, SqlSyntaxError
from bergline.sql.names.resolve import Lakes
from bergline.sql.procedures.expiry import ORPHAN_PROCEDURES, expire_snapshots, explain_expiry
from bergline.sql.procedures.procedure import TABLE, Parameter, Procedure
from bergline.sql.procedures.refs import REF_PROCEDURES, diff, merge, rebase
from bergline.sql.procedures.tables import TABLE_PROCEDURES
from bergline.sql.statements.statements import CallProcedure, Moment
from bergline.sql.text.timestamps import in_zone, parse_moment

_IN_PYTHON = {
    "rewrite_data_files": "table.compact()",
    "rewrite_position_delete_files": "table.compact()",
    "add_files": "table.append_files(files)",
    "create_changelog_view": "table.changes(before, after)",
}
"""Procedures of Iceberg that CALL does not run, and what does their work."""


def run_call(call: CallProcedure, lakes: Lakes, *, time_zone: str) -> pa.Table | None:
    """Carry out a procedure and return its rows; None if it is another catalog's."""
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
            hints=[f"there are {', '.join(PROCEDURES)}", _in_python(name)],
        )
    arguments = _bind(name, procedure, call)
    values = {
        p.name: _convert(name, p, arguments[p.name], time_zone) for p in procedure.parameters if p.name in arguments
    }
    lakes = lakes if prefix == ["system"] else lakes.within(call.procedure[0])
    if procedure.makes_table:
        return procedure.run(*lakes.place_text(values.pop("table")), **values)
    return procedure.run(lakes.resolve_text(values.pop("table")).table, **values)


PROCEDURES: dict[str, Procedure] = {
    **REF_PROCEDURES,
    **ORPHAN_PROCEDURES,
    **TABLE_PROCEDURES,
    "expire_snapshots": Procedure(
        (
            TABLE,
            Parameter("older_than", "timestamp"),
            Parameter("retain_last", "int"),
            Parameter("max_concurrent_deletes", "int"),
            Parameter("stream_results", "boolean"),
            Parameter("snapshot_ids", "array<bigint>"),
            Parameter("clean_expired_metadata", "boolean"),
        ),
        expire_snapshots,
    ),
    "explain_expiry": Procedure(
        (
            TABLE,
            Parameter("older_than", "timestamp"),
            Parameter("retain_last", "int"),
            Parameter("snapshot_ids", "array<bigint>"),
            Parameter("clean_expired_metadata", "boolean"),
        ),
        explain_expiry,
    ),
    "merge": Procedure(
        (
            TABLE,
            Parameter("branch", "string", required=True),
            Parameter("into", "string", required=True),
            Parameter("squash", "boolean"),
        ),
        merge,
    ),
    "rebase": Procedure(
        (
            TABLE,
            Parameter("branch", "string", required=True),
            Parameter("onto", "string", required=True),
            Parameter("squash", "boolean"),
        ),
        rebase,
    ),
    "diff": Procedure(
        (TABLE, Parameter("from_ref", "string", required=True), Parameter("to_ref", "string", required=True)), diff
    ),
}


def _in_python(name: str) -> str:
    if name in _IN_PYTHON:
        return f"in Python: `{_IN_PYTHON[name]}`"
    return f"in Python: {', '.join(f'{other} as `{call}`' for other, call in _IN_PYTHON.items())}"


def _bind(name: str, procedure: Procedure, call: CallProcedure) -> dict[str, Any]:
    names = [p.name for p in procedure.parameters]
    if len(call.positional) > len(names):
        raise InvalidInputError(f"expected up to {len(names)} arguments for `{name}`, found {len(call.positional)}")
    bound = dict(zip(names, call.positional, strict=False))
    for key, value in call.named.items():
        if key not in names:
            raise NotFoundError(f"no argument `{key}` of `{name}`", kind="argument", name=key, known=names)
        if key in bound:
            raise InvalidInputError(f"expected argument `{key}` of `{name}` once, found it twice")
        bound[key] = value
    for parameter in procedure.parameters:
        if parameter.required and bound.get(parameter.name) is None:
            raise InvalidInputError(f"expected argument `{parameter.name}` of `{name}`, found none")
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
        f"expected `{parameter.type}` for argument `{parameter.name}` of `{procedure}`, found {found}"
    )
