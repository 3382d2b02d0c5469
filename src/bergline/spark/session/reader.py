"""`spark.read.format("iceberg").load("db.orders")` for lake tables."""

from typing import Any

from pyspark.sql import DataFrame, DataFrameReader

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.spark.backends.choose import backend_of
from bergline.spark.session.tables import SessionTables

_FORMAT = "iceberg"


def load_table(
    session: SessionTables,
    reader: DataFrameReader,
    path: Any = None,
    format: str | None = None,  # noqa: A002  (Spark's name)
    schema: Any = None,
    **options: Any,
) -> DataFrame | None:
    """The table that `load` names; None if another format is asked for."""
    request = backend_of(reader).load_request(reader)
    source = request.source if format is None else format
    if str(source).lower() != _FORMAT:
        return None
    told = request.options | {key.lower(): str(value) for key, value in options.items()}
    name = told.pop("path", None) if path is None else path
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"expected the name of one table to load, found {name!r}")
    if schema is not None or request.has_schema:
        raise UnsupportedError(f"expected no schema for `{name}`: a table has its own")
    if "/" in name.split(".", maxsplit=1)[0]:
        raise UnsupportedError(
            f"expected a table name like `db.orders`, found the path `{name}`",
            hints=["register its metadata file with lake.register_table, and load it by name"],
        )
    frame = session.table(name, told)
    if frame is None:
        raise NotFoundError(f"no table `{name}` in the attached lakes", kind="table", name=name)
    return frame


def options_of(reader: DataFrameReader) -> dict[str, str]:
    """What a reader was told, also before attach; keys ignore case."""
    return backend_of(reader).load_request(reader).options
