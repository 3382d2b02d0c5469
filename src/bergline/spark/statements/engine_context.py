"""What a session has beside the lakes: temporary views, catalogs, databases, and the tables of Spark's own catalog."""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec
from pyspark.errors import AnalysisException

from bergline.errors import AlreadyExistsError, NotFoundError, UnsupportedError
from bergline.expressions.predicate import Predicate
from bergline.format.partition.hive_paths import split_partition_path
from bergline.format.schema.schema import Schema
from bergline.io.locations import normalized
from bergline.quoting import back_quoted, back_quoted_path, quoted_text
from bergline.spark.pushdown.condition import exact_condition
from bergline.spark.reads.scan import read
from bergline.spark.rows.engine import SparkRowEngine
from bergline.spark.runtime.backend import SparkBackend, check_running
from bergline.spark.runtime.sql_backend import RunSql
from bergline.spark.runtime.types import iceberg_schema
from bergline.sql.names.session_catalog import SESSION_CATALOG, SessionTable
from bergline.sql.text.tokens import Name
from bergline.table.engine.row_engine import RowEngine
from bergline.table.references.changed_rows import Changelog

_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
_TAKEN = "TABLE_OR_VIEW_ALREADY_EXISTS"


class SparkEngineContext:
    """Answers by the backend, and by `run_sql`, the session's own `sql`, to which lakes are unknown."""

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
        return self._backend.sql.has_partition_functions

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

    def session_catalog(self) -> "SparkSessionCatalog":
        """Spark's own catalog."""
        return SparkSessionCatalog(self._run_sql)


class SparkSessionCatalog:
    """Tables of Spark's own catalog as sources of imports, by statements that every kind of session has."""

    def __init__(self, run_sql: RunSql) -> None:
        self._run_sql = run_sql

    def table(self, name: Name) -> SessionTable:
        """A table; views and tables of sources without files are UnsupportedErrors."""
        full = _full(name)
        try:
            described = self._described(f"DESCRIBE TABLE EXTENDED {full} AS JSON")
        except AnalysisException as error:
            if error.getCondition() not in _MISSING:
                raise
            text = ".".join((SESSION_CATALOG, *name))
            raise NotFoundError(f"no table `{text}`", kind="table", name=text) from error
        location, provider = described.get("location"), described.get("provider")
        if not location or not provider:
            raise UnsupportedError(
                f"expected a table of files, found `{described.get('type', 'no files')}` for `{'.'.join(name)}`"
            )
        managed, partitioned = described.get("type") == "MANAGED", described.get("partition_columns") or ()
        return SessionTable(
            name=name,
            provider=provider,
            location=location,
            schema=iceberg_schema(self._run_sql(f"TABLE {full}").schema),
            partition_columns=tuple(partitioned),
            properties=described.get("table_properties") or {},
            is_managed=managed,
            is_bucketed=bool(described.get("bucket_columns")),
            survives_rename=not (managed and partitioned) or self._is_hive(),
        )

    def files(self, table: SessionTable) -> dict[str, dict[str, str]]:
        """The files that Spark would read, each with its partition; InvalidInputError if one has none."""
        full = _full(table.name)
        found = [unquote(path) for path in self._run_sql(f"TABLE {full}").inputFiles()]
        if not table.partition_columns:
            return {path: {} for path in found}
        base = normalized(table.location).rstrip("/")
        texts = [row[0] for row in self._run_sql(f"SHOW PARTITIONS {full}").collect()]
        directories = {f"{base}/{text}": dict(split_partition_path(text) or ()) for text in texts}
        if any(_directory(path) not in directories for path in found):
            directories |= self._located(full, directories, found)
        lost = next((path for path in found if _directory(path) not in directories), None)
        if lost is not None:
            raise UnsupportedError(f"expected each file in the directory of a partition of `{table}`, found {lost}")
        return {path: directories[_directory(path)] for path in found}

    def rename(self, table: SessionTable, new: str) -> SessionTable:
        """The table under its new name, and where its files are then."""
        name = (*table.name[:-1], new)
        try:
            self._run_sql(f"ALTER TABLE {_full(table.name)} RENAME TO {back_quoted_path(name)}")
        except AnalysisException as error:
            if error.getCondition() != _TAKEN:
                raise
            text = ".".join((SESSION_CATALOG, *name))
            raise AlreadyExistsError(f"table `{text}` exists already", kind="table", name=text) from error
        return msgspec.structs.replace(self.table(name), schema=table.schema)

    def drop(self, table: SessionTable) -> None:
        """Drop a table; of one that Spark does not manage, the files stay."""
        self._run_sql(f"DROP TABLE {_full(table.name)}")

    def _located(
        self, full: str, directories: Mapping[str, Mapping[str, str]], found: Iterable[str]
    ) -> dict[str, dict[str, str]]:
        """The directories of partitions that have no files where their names say."""
        filled = {_directory(path) for path in found}
        elsewhere = {}
        for directory, values in directories.items():
            if directory not in filled:
                spec = ", ".join(f"{back_quoted(name)} = {quoted_text(text)}" for name, text in values.items())
                described = self._described(f"DESCRIBE TABLE EXTENDED {full} PARTITION ({spec}) AS JSON")
                elsewhere[normalized(described["location"]).rstrip("/")] = dict(values)
        return elsewhere

    def _is_hive(self) -> bool:
        return bool(self._run_sql("SET spark.sql.catalogImplementation").collect()[0].value == "hive")

    def _described(self, text: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._run_sql(text).collect()[0][0])
        return found


def _full(name: Name) -> str:
    return back_quoted_path((SESSION_CATALOG, *name))


def _directory(path: str) -> str:
    return normalized(path).rpartition("/")[0]
