"""Files by other writers as data files, described from their footers; runs in this process and in Spark's tasks."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from bergline.datafiles.file.arrow_schema import file_field_id
from bergline.datafiles.file.columns import FileColumns, RowSource, named
from bergline.datafiles.file.open_input import open_with_stream
from bergline.datafiles.file.schema import identified
from bergline.datafiles.read.file_metrics import FileMetrics, file_metrics
from bergline.datafiles.write.metrics_mode import MetricsModes
from bergline.errors import FormatError, InvalidInputError
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.name_mapping import NameMapping
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO


class SourceFile(msgspec.Struct, frozen=True):
    """A file to be added to a table, with the partition that its path names."""

    location: str
    partition: tuple[Any, ...] = ()


class ImportPlan(msgspec.Struct, frozen=True):
    """What must be known about the table to which files are added."""

    schema: Schema
    spec: PartitionSpec
    mapping: NameMapping
    metrics: MetricsModes


def describe_files(io: FileIO, files: Sequence[SourceFile], plan: ImportPlan) -> list[DataFile]:
    """The data files, one footer read each; InvalidInputError for one that cannot be read as the table's rows."""
    return [_describe(io, file, plan) for file in files]


def _describe(io: FileIO, source: SourceFile, plan: ImportPlan) -> DataFile:
    with open_with_stream(io, source.location) as (parquet, stream):
        footer, columns = parquet.metadata, parquet.schema_arrow
        size = stream.seek(0, 2)
    file = DataFile(
        file_path=source.location,
        file_format="PARQUET",
        partition=source.partition,
        record_count=footer.num_rows,
        file_size_in_bytes=size,
        spec_id=plan.spec.spec_id,
        sort_order_id=0,
    )
    _check_columns(columns, file, plan)
    known = identified(columns, plan.mapping)
    metrics = file_metrics(footer, known, plan.schema, plan.metrics)
    if any(field.required for field in plan.schema.fields):  # even if the table's metrics modes ask for no counts
        _check_required(file_metrics(footer, known, plan.schema, MetricsModes()), file, plan)
    return msgspec.structs.replace(
        file,
        column_sizes=metrics.column_sizes,
        value_counts=metrics.value_counts,
        null_value_counts=metrics.null_value_counts,
        nan_value_counts={},
        lower_bounds=metrics.lower_bounds,
        upper_bounds=metrics.upper_bounds,
    )


def _check_columns(columns: pa.Schema, file: DataFile, plan: ImportPlan) -> None:
    """Refuse a file whose columns have other types, or whose own field ids mean other columns."""
    for column in columns:
        field_id = file_field_id(column)
        mapped = plan.mapping.by_name.get(column.name)
        if field_id is not None and field_id != (None if mapped is None else mapped.field_id):
            known = plan.schema.names_by_id.get(field_id)
            raise InvalidInputError(
                f"expected no field ids, or those of the table, found id {field_id} for column `{column.name}`"
                f"{f', which the table has for `{known}`' if known else ''}, in {file.file_path}"
            )
    _check_names(columns.names, file, plan)
    try:
        source = RowSource(file, spec=plan.spec)
        stored = FileColumns(columns, named(plan.schema), source, plan.mapping)
        empty = columns.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema=columns)]
        stored.convert(empty[0].select(stored.names), 0)
    except FormatError as error:
        raise InvalidInputError(f"{error} in {file.file_path}", hints=error.hints) from error


def _check_names(names: Sequence[str], file: DataFile, plan: ImportPlan) -> None:
    """Refuse a file none of whose columns is read, and one that differs from the table in the case of a name."""
    mapped = plan.mapping.by_name
    if not any(name in mapped for name in names):
        raise InvalidInputError(
            f"expected at least one column of the table, found {', '.join(f'`{name}`' for name in names)} "
            f"in {file.file_path}"
        )
    missing = {name.lower(): name for name in mapped if name not in names}
    for name in names:
        if name not in mapped and name.lower() in missing:
            raise InvalidInputError(
                f"expected column `{missing[name.lower()]}`, found `{name}` in {file.file_path}",
                hints=["names of columns in files are case-sensitive: add the file's to `schema.name-mapping.default`"],
            )


def _check_required(metrics: FileMetrics, file: DataFile, plan: ImportPlan) -> None:
    for field in plan.schema.fields:
        if field.required and (nulls := metrics.null_value_counts.get(field.id, 0)):
            found = f"{nulls} null{'s' if nulls > 1 else ''} in {file.file_path}"
            raise InvalidInputError(f"expected values in the required column `{field.name}`, found {found}")
