"""What table names mean in an attached session: which table of which lake, in what state, and where a new one goes."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError
from bergline.lake.lake import Lake
from bergline.spark.reads.following import following
from bergline.spark.runtime.backend import SparkBackend, check_running
from bergline.spark.runtime.sql_backend import TablePlace
from bergline.spark.statements.queries import result_frame
from bergline.spark.statements.session_text import session_name
from bergline.spark.statements.write_scopes import find_scope
from bergline.spark.writes.scope import WriteScope
from bergline.spark.writes.target import session_branch
from bergline.sql.names.resolve import Lakes, Target, new_table_name
from bergline.sql.names.selector import CHANGES_OPTIONS, READ_OPTIONS, VersionSelector, with_options
from bergline.sql.queries.query import TableUse
from bergline.sql.text.tokens import Name
from bergline.table.scans.changelog_scan import ChangelogRange, ChangelogScan
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table

_TIME_TRAVEL_KEYS = {
    "spark.sql.timeTravelVersionKey": "versionAsOf",
    "spark.sql.timeTravelTimestampKey": "timestampAsOf",
}


class SessionTables(msgspec.Struct, frozen=True):
    """A Spark session, and the tables of its lakes."""

    backend: SparkBackend
    lakes: Lakes

    @property
    def spark(self) -> SparkSession:
        """The session itself."""
        return self.backend.spark

    @property
    def scope(self) -> WriteScope | None:
        """The write scope of the pipeline's step that holds the session now; None if there is none."""
        return find_scope(self.spark)

    def scan_by_name(self, name: Name) -> TableScan | None:
        """A read of the table that a name means, as it is whenever that is read; None if that is not a lake's table."""
        target = self.lakes.resolve_relation(name)
        if not self.backend.knows_files or not isinstance(target, Target):
            return None
        source = self.source(target, follows=True)
        return source if isinstance(source, TableScan) and source.followed is not None else None

    def full_name(self, name: Name) -> Name:
        """A table's name with its catalog in front; columns may be qualified by it, or by its end."""
        lake, own = self.lakes.place(name) or (self.lakes.default, name)
        return (self.lakes.name_of(lake), *own)

    def with_read_options(self, selector: VersionSelector, options: Mapping[str, Any]) -> VersionSelector:
        """The selector with a reader's options; a setting may give those of time travel other names."""
        known = {option.lower() for option in (*READ_OPTIONS, *CHANGES_OPTIONS)}
        if any(key.lower() not in known for key in options):
            renamed = {str(self.spark.conf.get(name)).lower(): option for name, option in _TIME_TRAVEL_KEYS.items()}
            options = {renamed.get(key.lower(), key): value for key, value in options.items()}
        return with_options(selector, options, self.lakes.engine.time_zone)

    def table_place(self, use: TableUse, *numbers: int) -> TablePlace:
        """Where a table stands in a parsed statement; its columns may be qualified by its full name."""
        return TablePlace(numbers, self.full_name(use.name))

    def lake_name(self, text: str) -> Name | None:
        """The parts of a table name that belongs to a lake; None if it is not ours."""
        parts = session_name(text, self.backend)
        return parts if self.lakes.place(parts) else None

    def resolve_write(self, name: Name) -> Target:
        """The table that a DataFrame is written to, of a lake; NotFoundError if it does not exist."""
        check_running(self.backend)
        target = self.lakes.resolve(name)
        if target is None:
            raise NotFoundError(f"no table `{'.'.join(name)}`", kind="table", name=".".join(name))
        return target

    def place_new(self, name: Name) -> tuple[Lake, TableName]:
        """The lake that a new table goes to, and its name there."""
        check_running(self.backend)
        placed = self.lakes.place_existing(name)
        if placed is None:
            raise NotFoundError(f"no namespace `{'.'.join(name[:-1])}`", kind="namespace", name=".".join(name[:-1]))
        lake, rest = placed
        return lake, new_table_name(lake, rest)

    def scan_target(self, target: Target, columns: Iterable[str]) -> TableScan:
        """The scan of a table that is changed, in the state that its name means, with metadata columns."""
        source = self.source(target, columns)
        if not isinstance(source, TableScan):
            raise InvalidInputError(f"expected a table, found a metadata table of `{target.table.name}`")
        return source

    def source(
        self, target: Target, more_columns: Iterable[str] = (), *, follows: bool = False
    ) -> TableScan | DataFrame:
        """A read of the state that a name means, with metadata columns; metadata tables are read at once.

        A scan that `follows` its branch finds the rows that are there whenever its frame is run.
        """
        table, selector = target.table, target.selector
        if selector.changes is not None:
            return self._changes(table, selector.changes).with_columns(more_columns)
        if selector.metadata_table is not None and selector.after is not None:
            raise InvalidInputError(f"expected a table for an incremental read, found `{selector.metadata_table}`")
        if selector.after is not None:
            return table.scan_appends(selector.after, selector.snapshot_id).with_columns(more_columns)
        ref = selector.ref if selector.branch is None else selector.branch
        wanted: str | None = None
        if not selector.names_a_version and not (selector.metadata_table or "").startswith("all_"):
            wanted = session_branch(self.spark, self.scope, table)
            ref = wanted if wanted in table.refs else None
        if selector.metadata_table is not None:
            name, snapshot_id, moment = selector.metadata_table, selector.snapshot_id, selector.as_of_ms
            return result_frame(self.spark, table.inspect(name, ref=ref, snapshot_id=snapshot_id, as_of_ms=moment))
        scan = table.scan(ref=ref, snapshot_id=selector.snapshot_id, as_of_ms=selector.as_of_ms)
        if wanted is not None and ref is None:  # `main` is read until the session's branch is there
            scan = scan.as_branch(wanted)
        if follows and not selector.names_a_version and scan.version.branch is not None:  # a tag stays
            scan = following(scan, table)
        return scan.with_columns(more_columns)

    def _changes(self, table: Table, chosen: ChangelogRange) -> ChangelogScan:
        """Changes up to the head of the session's branch, unless something else is chosen."""
        wanted = session_branch(self.spark, self.scope, table) if chosen.branch is None else chosen.branch
        if wanted is not None and (wanted in table.refs or chosen.branch is not None):
            chosen = msgspec.structs.replace(chosen, branch=wanted)
        return table.scan_changes(chosen)
