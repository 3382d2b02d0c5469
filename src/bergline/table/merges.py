"""Changing rows: update, upsert and merge; each is one snapshot on a branch, or a staged one, or none."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bergline.arguments import check_list, check_text, shown
from bergline.datafiles.write.fit import fit_to_schema
from bergline.datafiles.write.input_rows import ArrowRows, as_arrow
from bergline.errors import InvalidInputError, near_names
from bergline.expressions.predicate import Predicate
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.format.types.types import child_fields
from bergline.table.commits.branches import check_write_branch
from bergline.table.commits.isolation import Isolation, RowLevelCommand, ValidateFrom
from bergline.table.engine.row_engine import RowEngine, check_row_engine
from bergline.table.handle import TableHandle, WriteArguments
from bergline.table.operations.row_changes import RowLevelWrite
from bergline.table.operations.validate_from import oldest_read
from bergline.table.references.staged import staged
from bergline.table.row_expressions.casts import check_whole
from bergline.table.row_expressions.parse import Names
from bergline.table.row_merges.bind import BoundMerge, bind_merge, bind_update_request
from bergline.table.row_merges.builder import MergeBuilder
from bergline.table.row_merges.clauses import (
    SOURCE,
    TARGET,
    MergeClause,
    RowCounts,
    RowMergeRequest,
    UpdateRequest,
    ValueClause,
)
from bergline.table.row_merges.operation import RowMerge, merge_engine
from bergline.table.row_merges.source import SourceRows, source_rows
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import BranchRead


class TableMerges:
    """Rows are found file by file, in this process, or on executors if an `engine` is given.

    All take `branch`, `summary`, `isolation`, `wap_id` and `engine` as `delete` does.
    """

    def __init__(self, table: TableHandle) -> None:
        self._table = table

    def update(
        self,
        values: Mapping[str, Any],
        where: str | Predicate | None = None,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        wap_id: str | None = None,
        engine: RowEngine | None = None,
    ) -> RowCounts:
        """Set columns of the rows that match a condition, by default of all rows; if none does, nothing is committed.

        Values are SQL text over the row's columns (`{"amount": "amount * 2"}`), or Python values as literals.
        """
        options = WriteArguments(branch, summary, isolation, wap_id, engine)
        request, now, by_engine = UpdateRequest(values, where), self._now(), merge_engine(engine) is not None

        def bind(base: TableMetadata) -> BoundMerge:
            return bind_update_request(request, base.schema, Names({TARGET: base.schema}, now), by_engine=by_engine)

        return self._run("update", request, bind, source_rows([], Schema(fields=())), options)

    def upsert(
        self,
        rows: ArrowRows | TableScan,
        keys: Sequence[str] | None = None,
        *,
        when_matched_update_all: bool = True,
        when_not_matched_insert_all: bool = True,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        wap_id: str | None = None,
        engine: RowEngine | None = None,
    ) -> RowCounts:
        """Update the rows whose keys exist already, if they differ, and insert the others.

        Keys are names of columns, by default the identifier fields; each key may occur only once in the rows. Columns
        that the rows do not have keep their values, and get their default in new rows.
        """
        columns = self._keys(keys)
        clauses: list[ValueClause] = []
        if when_matched_update_all:
            clauses.append(MergeClause("matched", "update"))
        if when_not_matched_insert_all:
            clauses.append(MergeClause("not matched", "insert"))
        if not clauses:
            raise InvalidInputError("expected to update or to insert, found neither")
        request = RowMergeRequest(columns, tuple(clauses), only_changed=True, partial=True, unique_source=True)
        options = WriteArguments(branch, summary, isolation, wap_id, engine)
        return self._merge(request, self._rows_to_write(rows, columns), options, _branch_read(rows))

    def merge(
        self,
        source: ArrowRows | TableScan,
        on: str | Sequence[str],
        *,
        source_alias: str = SOURCE,
        target_alias: str = TARGET,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        wap_id: str | None = None,
        engine: RowEngine | None = None,
    ) -> MergeBuilder:
        """Start a merge: add clauses (`when_matched_update_all()`, …), then run it with `execute()`.

        `on` is a condition such as `target.id = source.id`, or a list of columns that are equal on both sides.
        """
        options = WriteArguments(branch, summary, isolation, wap_id, engine)
        aliases = [check_text(alias, "text for an alias").casefold() for alias in (source_alias, target_alias)]
        if aliases[0] == aliases[1] or "" in aliases:
            raise InvalidInputError(f"expected two aliases, found `{source_alias}` and `{target_alias}`")
        columns = on if isinstance(on, str) else check_list(on, "column")
        if not columns:
            raise InvalidInputError("expected a condition or columns to match rows on, found none")
        rows, read = source_rows(source, self._table.schema), _branch_read(source)
        return MergeBuilder(
            RowMergeRequest(columns, (), target_alias, source_alias),
            lambda complete: self._merge(complete, rows, options, read),
        )

    def _merge(
        self, request: RowMergeRequest, source: SourceRows, options: WriteArguments, read: BranchRead | None
    ) -> RowCounts:
        now, by_engine = self._now(), merge_engine(options.engine) is not None

        def bind(base: TableMetadata) -> BoundMerge:
            sides = {request.target_alias: base.schema, request.source_alias: source.schema}
            return bind_merge(request, base.schema, source, Names(sides, now), by_engine=by_engine)

        return self._run("merge", request, bind, source, options, read=read)

    def _run(
        self,
        command: RowLevelCommand,
        request: RowMergeRequest | UpdateRequest,
        bind: Callable[[TableMetadata], BoundMerge],
        source: SourceRows,
        options: WriteArguments,
        *,
        read: BranchRead | None = None,
    ) -> RowCounts:
        metadata = self._table.metadata
        check_write_branch(metadata, options.branch)
        level = options.level(metadata, command)
        own = self._table.snapshot_summary(options.summary, options.wap_id)
        write = RowLevelWrite(command, options.branch, isolation=options.isolation, summary=own)
        # otherwise changes by others since the source was read from the same branch would be overwritten
        from_branch = oldest_read(metadata, options.branch, (read,)) if read and level else None
        operation = RowMerge(
            self._table.io,
            request,
            bind,
            source,
            write,
            schema=metadata.schema,
            engine=check_row_engine(options.engine),
            source_read=ValidateFrom(from_branch.snapshot_id, level) if from_branch and level else None,
        )
        bind(metadata)  # errors are raised before anything is read
        self._table.commit(staged(operation, options.wap_id))
        return operation.counts

    def _now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self._table.timing.clock_ms() / 1000, dt.UTC)

    def _keys(self, given: Sequence[str] | None) -> tuple[str, ...]:
        schema = self._table.schema
        if given is None:
            found = tuple(schema.names_by_id[i] for i in sorted(schema.identifier_field_ids))
            if not found:
                raise InvalidInputError(
                    "expected keys, found none, and no identifier fields in the table's schema",
                    hints=["name the columns that identify a row: upsert(rows, keys=[…])"],
                )
            return found
        names = check_list(given, "column")
        if not names:
            raise InvalidInputError("expected at least one key, found none")
        fields = [schema.find(name) for name in names]
        if len({field.id for field in fields}) < len(fields):
            raise InvalidInputError(f"expected each key once, found {shown(list(names))}")
        return tuple(schema.names_by_id[field.id] for field in fields)

    def _rows_to_write(self, rows: ArrowRows | TableScan, keys: Sequence[str]) -> SourceRows:
        """Rows that fit like appended ones, except that columns may be missing."""
        schema = self._table.schema
        table = rows.to_arrow() if isinstance(rows, TableScan) else as_arrow(rows, schema)
        known = {field.name: field for field in schema.fields}
        for name in table.column_names:
            if name not in known:
                near = near_names(name, known)
                raise InvalidInputError(
                    f"expected columns {', '.join(f'`{n}`' for n in known)}, found `{name}`",
                    hints=[f"did you mean {', '.join(f'`{n}`' for n in near)}?"] if near else [],
                )
        for key in keys:
            if (column := key.partition(".")[0]) not in table.column_names and key not in table.column_names:
                raise InvalidInputError(f"expected the key `{key}` in the rows, found no column `{column}`")
        present = Schema(fields=tuple(f for f in schema.fields if f.name in table.column_names))
        for field in (f for f in present.fields if child_fields(f.type)):
            given = [row[field.name] for row in rows] if isinstance(rows, list | tuple) else []
            for part in (*given, *table.column(field.name).chunks):
                check_whole(part, field, field.name)
        return source_rows(fit_to_schema(table, present), schema)


def _branch_read(rows: ArrowRows | TableScan) -> BranchRead | None:
    return rows.branch_read if isinstance(rows, TableScan) else None
