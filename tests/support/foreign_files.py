"""Parquet files as another writer would leave them: any physical names, field ids or none, any order."""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bergline import Table
from bergline.format.manifest.manifest import DataFile


def stored(name: str, type_: pa.DataType, field_id: int | None = None) -> pa.Field:
    """A column of a file, with its field id if it has one."""
    metadata = None if field_id is None else {"PARQUET:field_id": str(field_id)}
    return pa.field(name, type_, metadata=metadata)


def write_foreign_file(
    table: Table, columns: Mapping[pa.Field, list[Any]], *, about: Mapping[str, str] | None = None, **options: Any
) -> DataFile:
    """A file beside the table's own, with these columns in this order; `about` is what its footer says besides."""
    schema = pa.schema(list(columns))
    rows = pa.table([pa.array(values, f.type) for f, values in columns.items()], schema=schema)
    directory = Path(table.metadata.location.removeprefix("file://")) / "data"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"foreign-{uuid.uuid4().hex}.parquet"
    with pq.ParquetWriter(path, schema, **{"store_schema": False, **options}) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(dict(about or {}))
    return DataFile(f"file://{path}", "PARQUET", (), rows.num_rows, path.stat().st_size)
