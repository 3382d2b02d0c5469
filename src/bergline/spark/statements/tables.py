"""What table names mean in an attached session: which table of which lake, in what state, and where a new one goes."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Self

import msgspec
from pyspark.sql import DataFrame, SparkSession

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError
from bergline.expressions.predicate import Predicate
from bergline.format.schema.schema import Schema
from bergline.lake.lake import Lake
from bergline.spark.pushdown.condition import exact_condition
from bergline.spark.query_text.metadata_columns import metadata_columns
from bergline.spark.reads.following import following
from bergline.spark.reads.scan import late_frame, read
from bergline.spark.rows.engine import SparkRowEngine
from bergline.spark.runtime.backend import DeferredRows, RunSql, SparkBackend, check_running
from bergline.spark.statements.queries import read_deferred, result_frame
from bergline.spark.statements.session_catalog import SparkSessionCatalog
from bergline.spark.statements.session_text import session_name
from bergline.spark.statements.write_scopes import find_scope
from bergline.spark.views.scopes import no_versions
from bergline.spark.writes.scope import WriteScope
from bergline.spark.writes.target import session_branch
from bergline.sql.names.resolve import Lakes, Target, ViewTarget, new_table_name
from bergline.sql.names.selector import CHANGES_OPTIONS, READ_OPTIONS, VersionSelector, with_options
from bergline.sql.names.session_catalog import SESSION_CATALOG
from bergline.sql.text.tokens import Name
from bergline.table.engine.row_engine import RowEngine
from bergline.table.references.changed_rows import Changelog
from bergline.table.scans.changelog_scan import ChangelogRange, ChangelogScan
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table

_TIME_TRAVEL_KEYS = {
    "spark.sql.timeTravelVersionKey": "versionAsOf",
    "spark.sql.timeTravelTimestampKey": "timestampAsOf",
}
Relation = Target | ViewTarget | DataFrame
"""What a name in a query means: a table of a lake, a view, or rows that are taken as they are."""


class SessionTables:
    """A Spark session and the tables of its lakes."""

    def __init__(self, backend: SparkBackend, lakes: Lakes) -> None:
        self.backend = backend
        self._spark = backend.spark
        self._follows = False
        """Whether frames have the rows that their tables will have when they are run."""
        self._keeps = False
        self.lakes = lakes

    @property
    def spark(self) -> SparkSession:
        """The session itself."""
        return self._spark

    @property
    def scope(self) -> WriteScope | None:
        """The write scope of the pipeline's step that holds the session now; None if there is none."""
        return find_scope(self._spark)

    def following(self, *, keeps: bool = False) -> Self:
        """The same session for rows that outlive their statement, in frames; or are kept, in a view."""
        session = copy.copy(self)
        session._follows, session._keeps = True, keeps  # noqa: SLF001  (this class)
        return session

    def table(self, name: str, options: Mapping[str, Any] | None = None) -> DataFrame | None:
        """A table by name, at the version that reader options say; None if it is not ours."""
        parts = session_name(name, self.backend)
        target = self.lakes.resolve_relation(parts)
        if target is None:
            return None
        if isinstance(target, ViewTarget):
            if options:
                raise no_versions(target)
            full = (target.lake, *target.view.name.namespace, target.view.name.name)
            return self.backend.qualified(self.rows_of(target), full)
        selector = self.with_read_options(target.selector, options or {})
        source = self.following()._source(self.lakes.target(target.table, selector))  # noqa: SLF001  (this class)
        if not isinstance(source, TableScan):
            return self._read(source)
        lake, own = (self.lakes.place(parts) or (self.lakes.default,))[0], target.table.name
        full = (self.lakes.name_of(lake), *own.namespace, own.name)
        return late_frame(source, self._spark, full, metadata_columns(target))

    def scan_by_name(self, name: Name) -> TableScan | None:
        """A read of the table that a name means, as it is whenever that is read; None if that is not a lake's table."""
        target = self.lakes.resolve_relation(name)
        if not self.backend.knows_files or not isinstance(target, Target):
            return None
        source = self.following()._source(target)  # noqa: SLF001  (this class)
        return source if isinstance(source, TableScan) and source.followed is not None else None

    def full_name(self, name: Name) -> Name:
        """A table's name with its catalog in front; columns may be qualified by it, or by its end."""
        lake, own = self.lakes.place(name) or (self.lakes.default, name)
        return (self.lakes.name_of(lake), *own)

    def with_read_options(self, selector: VersionSelector, options: Mapping[str, Any]) -> VersionSelector:
        """The selector with a reader's options; a setting may give those of time travel other names."""
        known = {option.lower() for option in (*READ_OPTIONS, *CHANGES_OPTIONS)}
        if any(key.lower() not in known for key in options):
            renamed = {str(self._spark.conf.get(name)).lower(): option for name, option in _TIME_TRAVEL_KEYS.items()}
            options = {renamed.get(key.lower(), key): value for key, value in options.items()}
        return with_options(selector, options, self.lakes.engine.time_zone)

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
        source = self._source(target, columns)
        if not isinstance(source, TableScan):
            raise InvalidInputError(f"expected a table, found a metadata table of `{target.table.name}`")
        return source

    def rows_of(self, target: Relation) -> DataFrame:
        """All rows of what a name means."""
        return self._read(self._source(target))

    def _read(self, source: TableScan | DataFrame | DeferredRows) -> DataFrame:
        if isinstance(source, DeferredRows):
            return read_deferred(source, self.backend)
        return read(source, self._spark) if isinstance(source, TableScan) else source

    def _source(self, target: Relation, more_columns: Iterable[str] = ()) -> TableScan | DataFrame | DeferredRows:
        """A read of the state that a name means; metadata tables are read at once."""
        if isinstance(target, DataFrame):
            return target
        if isinstance(target, ViewTarget):
            raise InvalidInputError(f"expected a table, found the view `{target.name}`")
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
            wanted = session_branch(self._spark, self.scope, table)
            ref = wanted if wanted in table.refs else None
        if selector.metadata_table is not None:
            name, snapshot_id, moment = selector.metadata_table, selector.snapshot_id, selector.as_of_ms
            return result_frame(self._spark, table.inspect(name, ref=ref, snapshot_id=snapshot_id, as_of_ms=moment))
        scan = table.scan(ref=ref, snapshot_id=selector.snapshot_id, as_of_ms=selector.as_of_ms)
        if wanted is not None and ref is None:  # `main` is read until the session's branch is there
            scan = scan.as_branch(wanted)
        if self._follows and not selector.names_a_version and scan.version.branch is not None:  # a tag stays
            scan = following(scan, table)
        return scan.with_columns(more_columns)

    def _changes(self, table: Table, chosen: ChangelogRange) -> ChangelogScan:
        """Changes up to the head of the session's branch, unless something else is chosen."""
        wanted = session_branch(self._spark, self.scope, table) if chosen.branch is None else chosen.branch
        if wanted is not None and (wanted in table.refs or chosen.branch is not None):
            chosen = msgspec.structs.replace(chosen, branch=wanted)
        return table.scan_changes(chosen)


class SparkEngineContext:
    """What a session has beside the lakes: temporary views, catalogs, databases."""

    def __init__(self, backend: SparkBackend, run_sql: RunSql) -> None:
        self._backend = backend
        self._run_sql = run_sql

    @property
    def user(self) -> str | None:
        """Who runs the session."""
        return self._backend.user(self._run_sql)

    @property
    def time_zone(self) -> str:
        """The session's time zone."""
        return str(self._backend.spark.conf.get("spark.sql.session.timeZone"))

    @property
    def is_case_sensitive(self) -> bool:
        """What `spark.sql.caseSensitive` says."""
        return str(self._backend.spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"

    def has_temporary_view(self, name: str) -> bool:
        """Whether there is such a temporary view."""
        return self._backend.has_temporary_view(name, self._run_sql)

    @property
    def has_partition_functions(self) -> bool:
        """Whether queries may call Iceberg's partition transforms."""
        return self._backend.has_partition_functions

    def has_catalog(self, name: str) -> bool:
        """Whether Spark has a catalog of this name."""
        return name == SESSION_CATALOG or self._backend.spark.conf.get(f"spark.sql.catalog.{name}", None) is not None

    def namespaces(self) -> list[str]:
        """The namespaces of Spark's current catalog."""
        return [row[0] for row in self._run_sql("SHOW NAMESPACES").collect()]

    def catalogs(self) -> list[str]:
        """The catalogs that Spark has opened so far."""
        return [row[0] for row in self._run_sql("SHOW CATALOGS").collect()]

    def temporary_views(self) -> list[str]:
        """The session's temporary views."""
        return [row.viewName for row in self._run_sql("SHOW VIEWS").collect() if row.isTemporary]

    def create_view(self, name: str, changes: Changelog) -> None:
        """Create or replace a temporary view, which keeps the plan of the changes."""
        read(changes, self._backend.spark).createOrReplaceTempView(name)

    def row_engine(self) -> RowEngine:
        """The engine of the session's executors."""
        check_running(self._backend)
        return SparkRowEngine(self._backend.spark)

    def predicate(self, condition: str, schema: Schema) -> Predicate:
        """What a condition means to Spark: its names, casts and time zone count."""
        return exact_condition(self._backend.spark, schema, condition).predicate

    def session_catalog(self) -> SparkSessionCatalog:
        """Spark's own catalog."""
        return SparkSessionCatalog(self._run_sql)
