"""`CALL system.rewrite_data_files` and `rewrite_position_delete_files`, with the official columns."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from bergline.format.metadata.refs import MAIN
from bergline.sql.names.engine_context import EngineContext
from bergline.sql.procedures.procedure import TABLE, Parameter, Procedure
from bergline.table.table import Table

_INT, _LONG = pa.int32(), pa.int64()
_DATA_FILES: Final = {
    "rewritten_data_files_count": _INT,
    "added_data_files_count": _INT,
    "rewritten_bytes_count": _LONG,
    "failed_data_files_count": _INT,
    "removed_delete_files_count": _INT,
}
_DELETE_FILES: Final = {
    "rewritten_delete_files_count": _INT,
    "added_delete_files_count": _INT,
    "rewritten_bytes_count": _LONG,
    "added_bytes_count": _LONG,
}


def rewrite_data_files(
    table: Table,
    *,
    engine: EngineContext,
    strategy: str | None = None,
    sort_order: str | None = None,
    options: Mapping[str, str] | None = None,
    where: str | None = None,
    branch: str = MAIN,
) -> pa.Table:
    """Rewrite data files of a branch by binpack, in a sort order or in z-order."""
    done = table.rewrite_data_files(
        None if where is None else engine.predicate(where, table.schema),
        branch=branch,
        strategy=strategy,
        sort_order=sort_order,
        options=options,
        engine=engine.row_engine(),
    )
    return _row(
        _DATA_FILES,
        done.rewritten_data_files,
        done.added_data_files,
        done.rewritten_bytes,
        done.failed_data_files,
        done.removed_delete_files,
    )


def rewrite_position_delete_files(
    table: Table, *, engine: EngineContext, options: Mapping[str, str] | None = None, where: str | None = None
) -> pa.Table:
    """Join small position delete files of `main`, and drop what is about no row any more."""
    done = table.rewrite_position_deletes(
        None if where is None else engine.predicate(where, table.schema), options=options, engine=engine.row_engine()
    )
    return _row(
        _DELETE_FILES, done.rewritten_delete_files, done.added_delete_files, done.rewritten_bytes, done.added_bytes
    )


def _row(columns: Mapping[str, pa.DataType], *values: int) -> pa.Table:
    schema = pa.schema([pa.field(name, type_, nullable=False) for name, type_ in columns.items()])
    return pa.Table.from_pylist([dict(zip(columns, values, strict=True))], schema=schema)


REWRITE_PROCEDURES: dict[str, Procedure] = {
    "rewrite_data_files": Procedure(
        (
            TABLE,
            Parameter("strategy", "string"),
            Parameter("sort_order", "string"),
            Parameter("options", "map<string,string>"),
            Parameter("where", "string"),
            Parameter("branch", "string"),
        ),
        rewrite_data_files,
        needs_engine=True,
        on_branch=True,
    ),
    "rewrite_position_delete_files": Procedure(
        (TABLE, Parameter("options", "map<string,string>"), Parameter("where", "string")),
        rewrite_position_delete_files,
        needs_engine=True,
    ),
}
