"""The scope of a view's query, and the columns and errors that reading it gives.

A view is read as Spark reads its own: the columns that its query had when it was created are found by name and up-cast
to the view's. Nothing of the caller is seen in it: no temporary views, no queries of WITH, no current namespace.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.errors import BerglineError, InvalidInputError, NotFoundError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import NestedField
from bergline.quoting import dotted
from bergline.spark.runtime.types import read_schema, spark_schema
from bergline.sql.names.resolve import Lakes, ViewTarget
from bergline.sql.queries.query import Query, TableUse
from bergline.sql.statements.views import QUERY_COLUMNS
from bergline.sql.text.tokens import Name

_COMMENT = "comment"
_INCOMPATIBLE = "INCOMPATIBLE_VIEW_SCHEMA_CHANGE"
_WIDTHS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType)
_DIGITS: dict[type[T.DataType], int] = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 20}
_TIMES = (T.TimestampType, T.TimestampNTZType)


class ViewScope(msgspec.Struct, frozen=True):
    """Where the names in a view's query belong."""

    views: tuple[str, ...]
    """The view, after those through which it is read."""
    catalog: str
    namespace: Name
    checks: bool = False
    """Whether a query is only checked: its tables are read without rows, with the comments of their columns."""

    def lakes(self, lakes: Lakes, own: str) -> Lakes:
        """The lakes as seen from here; `own` is the view's lake, which counts where its catalog is one of Spark's."""
        if not lakes.has(self.catalog) and not lakes.engine.has_catalog(self.catalog):
            raise NotFoundError(
                f"no catalog `{self.catalog}` in this session, which view `{self.views[-1]}` reads",
                kind="catalog",
                name=self.catalog,
                known=lakes.names,
                hints=[f"attach its lake under that name: `attach(spark, lake, name='{self.catalog}')`"],
            )
        return lakes.within_view(self.catalog if lakes.has(self.catalog) else own, self.namespace)

    def absolute(self, name: Name, lakes: Lakes) -> Name | None:
        """The full name of a table in one of Spark's catalogs; None if a name belongs to a lake."""
        full = name
        if len(name) == 1:
            full = (self.catalog, *self.namespace, *name)
        elif len(name) == 2 and not lakes.engine.has_catalog(name[0]):  # noqa: PLR2004
            full = (self.catalog, *name)
        return None if lakes.has(full[0]) or not lakes.engine.has_catalog(full[0]) else full

    def not_found(self, name: Name) -> NotFoundError:
        """The error for a name that means nothing here."""
        full = ".".join(name)
        hint = f"names of Spark's tables begin with their catalog in a view, as in `spark_catalog.{full}`"
        return NotFoundError(f"no table `{full}` in catalog `{self.catalog}`", kind="table", name=full, hints=[hint])


def view_scope(target: ViewTarget, outer: ViewScope | None) -> ViewScope:
    """The scope of a view's query; RECURSIVE_VIEW if the view is being read already."""
    names = () if outer is None else outer.views
    if target.name in names:
        cycle = " -> ".join(f"`{name}`" for name in (*names[names.index(target.name) :], target.name))
        raise InvalidInputError(f"view `{target.name}` reads itself: {cycle}", condition="RECURSIVE_VIEW")
    version = target.view.metadata.current_version
    catalog = version.default_catalog or target.lake
    checks = outer is not None and outer.checks
    return ViewScope((*names, target.name), catalog, tuple(version.default_namespace), checks)


def check_no_time_travel(use: TableUse, target: ViewTarget) -> None:
    """A view has no snapshots."""
    if use.as_of is not None:
        raise no_versions(target)


def no_versions(target: ViewTarget) -> NotFoundError:
    """The error for a version of a view."""
    hint = "write VERSION AS OF or TIMESTAMP AS OF after a table, in a query or in the view's own"
    name = str(target.view.name)
    return NotFoundError(f"no table `{name}` to read a version of: it is a view", kind="table", name=name, hints=[hint])


@contextmanager
def view_errors(target: ViewTarget, query: Query) -> Iterator[None]:
    """Errors of a view's query name the view, and the column and tables of one that no longer resolves."""
    try:
        yield
    except BerglineError as error:
        if isinstance(error, NotFoundError) and error.kind in {"table", "namespace"} and " view `" not in error.message:
            error.message += f", which view `{target.name}` reads"
        elif f"`{target.name}`" not in error.message:
            error.add_note(f"in view `{target.name}`")
        raise
    except AnalysisException as error:
        condition = error.getCondition() or ""
        if not condition.startswith("UNRESOLVED_COLUMN"):
            error.add_note(f"in view `{target.name}`: {query.text}")
            raise
        column = (error.getMessageParameters() or {}).get("objectName", "").strip("`")
        raise _missing_column(target, column, query) from error


def view_columns(rows: DataFrame, target: ViewTarget, query: Query) -> DataFrame:
    """The rows of a view's query with the names, types and comments of the view's columns."""
    found, wanted = rows.schema.fields, spark_schema(target.view.schema).fields
    places = _places(target, [f.name for f in found], query)
    columns = []
    for place, field, described in zip(places, wanted, target.view.schema.fields, strict=True):
        column, before = F.col(f"_{place}"), found[place].dataType
        if not can_up_cast(before, field.dataType):
            raise InvalidInputError(
                f"cannot up-cast column `{field.name}` of view `{target.name}` from {before.simpleString()} to "
                f"{field.dataType.simpleString()}: {_read(query)} changed",
                hints=[_recreate(target, query)],
                condition="CANNOT_UP_CAST_DATATYPE",
            )
        column = column if before == field.dataType else column.cast(field.dataType)
        metadata = {_COMMENT: described.doc} if described.doc else {}
        columns.append(column.alias(field.name, metadata=metadata))
    return rows.toDF(*(f"_{i}" for i in range(len(found)))).select(*columns)


def _places(target: ViewTarget, found: list[str], query: Query) -> Sequence[int]:
    """Which column of the query each column of the view is."""
    fields = target.view.schema.fields
    recorded = target.view.properties.get(QUERY_COLUMNS)
    names = [f.name for f in fields] if recorded is None else recorded.split(",")
    if recorded == ",".join(found) or (
        len(found) == len(fields) and not _match_by_name(recorded, names, fields, found)
    ):
        return range(len(fields))
    if len(names) != len(fields):
        raise _missing_column(target, recorded or "", query)
    places = []
    for i, name in enumerate(names):
        here = [place for place, known in enumerate(found) if known.casefold() == name.casefold()]
        if len(here) != sum(other.casefold() == name.casefold() for other in names):
            raise _missing_column(target, name, query, found)
        places.append(here[sum(other.casefold() == name.casefold() for other in names[:i])])
    return places


def _match_by_name(recorded: str | None, names: list[str], fields: Sequence[NestedField], found: list[str]) -> bool:
    """Whether names tell the columns: not if one has a comma, nor if none were recorded and the view's own differ."""
    if recorded is None:
        return {name.casefold() for name in names} <= {name.casefold() for name in found}
    return len(names) == len(fields)


def can_up_cast(before: T.DataType, after: T.DataType) -> bool:
    """Whether every value stays what it is, by Spark's rule for the columns of views."""
    match before, after:
        case (T.StructType(), T.StructType()):
            pairs = list(zip(before.fields, after.fields, strict=False))
            same = len(before.fields) == len(after.fields)
            return same and all(can_up_cast(a.dataType, b.dataType) for a, b in pairs)
        case (T.ArrayType(), T.ArrayType()):
            return can_up_cast(before.elementType, after.elementType)
        case (T.MapType(), T.MapType()):
            return can_up_cast(before.keyType, after.keyType) and can_up_cast(before.valueType, after.valueType)
        case (T.DecimalType(), T.DecimalType()):
            whole = before.precision - before.scale <= after.precision - after.scale
            return whole and before.scale <= after.scale
        case (_, T.DecimalType()):
            return type(before) in _DIGITS and after.precision - after.scale >= _DIGITS[type(before)]
        case (_, T.StringType()):
            return isinstance(before, T.AtomicType) and not isinstance(before, T.BinaryType)
    if isinstance(before, T.NullType) or before == after:
        return True
    if type(before) in _WIDTHS and type(after) in _WIDTHS:
        return _WIDTHS.index(type(before)) <= _WIDTHS.index(type(after))
    return isinstance(before, (T.DateType, *_TIMES)) and isinstance(after, _TIMES)


def _missing_column(target: ViewTarget, column: str, query: Query, found: Iterable[str] = ()) -> BerglineError:
    known = ", ".join(f"`{name}`" for name in found)
    return NotFoundError(
        f"no column `{column}` any more in {_read(query)}, which view `{target.name}` reads"
        + (f"; its query gives {known}" if known else ""),
        kind="column",
        name=column,
        hints=[_recreate(target, query)],
        condition=_INCOMPATIBLE,
    )


def _read(query: Query) -> str:
    names = dict.fromkeys(".".join(use.name) for use in query.tables)
    return ", ".join(f"`{name}`" for name in names) or "its query"


def _recreate(target: ViewTarget, query: Query) -> str:
    name = dotted((target.lake, *target.view.name.namespace, target.view.name.name))
    return f"CREATE OR REPLACE VIEW {name} AS {query.text}"


def commented_frame(spark: SparkSession, schema: Schema) -> DataFrame:
    """No rows of a table, with the comments of its columns."""
    fields = [
        T.StructField(field.name, field.dataType, field.nullable, {_COMMENT: known.doc} if known.doc else None)
        for field, known in zip(read_schema(schema).fields, schema.fields, strict=True)
    ]
    return spark.createDataFrame([], T.StructType(fields))
