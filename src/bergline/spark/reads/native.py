"""Files read by Spark's own Parquet reader; deleted rows and what is known of files come by joins.

What it does must not depend on the session's settings: they are looked at when a frame is run, not when it is made.
"""

import re
import zlib
from collections.abc import Sequence
from urllib.parse import quote, unquote

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.schema.reserved import FILE, POS, RESERVED_IDS, SPEC_ID
from bergline.format.types.types import DOUBLE, FLOAT, NestedField, StructType, walk_fields
from bergline.io.fileio import FileIO
from bergline.io.locations import local_path, object_location, scheme_of
from bergline.quoting import back_quoted
from bergline.scan.plan import PlannedFile, ScanPlan, columns_to_read
from bergline.spark.pushdown.filter import spark_filter
from bergline.spark.reads.deletes import BITS, deleted_bits, deleted_keys, deleted_positions, key_sets
from bergline.spark.reads.groups import ReadGroup, are_marked
from bergline.spark.reads.native_columns import NativeColumn
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.tasks import missing_file
from bergline.spark.runtime.types import spark_type

# options of Spark's reader: take paths literally, infer nothing from them, and never pass over a file
_OPTIONS = {
    "recursiveFileLookup": "true",
    "__globPaths__": "false",
    "datetimeRebaseMode": "CORRECTED",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
_PATH, _KNOWN, _ROW, _FILE, _MARKED, _BITS, _LOCATION, _SPEC, _SET, _KEY = (
    f"bergline {name}" for name in ("path", "known", "row", "file", "marked", "bits", "at", "spec", "set", "key")
)
_BITS_SHIFT = BITS.bit_length() - 1
_ROW_BITS = 40
"""No file has more rows than that."""


def read_native(plan: ScanPlan, group: ReadGroup, backend: SparkBackend, io: FileIO) -> DataFrame:
    """The rows of files that `read_groups` gave to Spark's reader."""
    wanted, files, deleted = columns_to_read(plan), group.files, group.has_deletes
    keys = key_sets(files, plan.key_columns) if deleted else []
    names = {f.id: f.name for f in wanted.fields}
    names |= {c.field.id: f"{_KEY} {c.field.id}" for c in group.columns if c.field.id not in names}
    rows = _open(plan, group, backend)
    about_files = deleted or any(f.id in RESERVED_IDS for f in wanted.fields)
    columns = [_as_in_table(c).alias(names[c.field.id]) for c in group.columns]
    rows = rows.select(*columns, *(_position() if about_files else ()))
    by_position = deleted and any(planned.position_deletes for planned in files)
    marked = by_position and are_marked(files)
    if about_files:
        bits = deleted_bits(files, plan.snapshot_id, backend, io) if marked else None
        rows = _with_files(rows, files, [key.sets for key in keys], bits, backend)
    if marked:
        rows = rows.where(_is_unmarked(rows[_BITS], rows[_ROW]))
    elif by_position:
        gone = F.broadcast(deleted_positions(files, plan.snapshot_id, backend, io))
        rows = rows.join(gone, _in_one(rows[_FILE], rows[_ROW]) == _in_one(gone["file"], gone["pos"]), "left_anti")
    for number, key in enumerate(keys):
        gone = F.broadcast(deleted_keys(key, plan, backend, io))
        same = rows[f"{_SET} {number}"] == gone["set"]
        for position, column in enumerate(key.columns):
            same &= rows[back_quoted(names[column.field_id])].eqNullSafe(gone[f"key{position}"])
        rows = rows.join(gone, same, "left_anti")
    rows = rows.select(*(_asked_for(f) for f in wanted.fields))
    if plan.filter == ALWAYS_TRUE:
        return rows
    return rows.where(spark_filter(plan.filter, plan.table_schema)).select(*(_column(f) for f in plan.schema.fields))


def _open(plan: ScanPlan, group: ReadGroup, backend: SparkBackend) -> DataFrame:
    """The columns that files have of those asked for, under their names in the files."""
    paths = group.paths
    stored = [c.stored for c in group.columns if c.stored is not None]
    types = T.StructType([T.StructField(f.name, spark_type(f.type, f.name)) for f in stored])
    reader = backend.spark.read.schema(types).options(**_OPTIONS)
    try:
        rows = backend.load_files(reader, [spark_location(path) for path in paths], group.sizes)
    except AnalysisException as error:
        for path in paths:
            if path.rsplit("/", 1)[-1] in str(error) and error.getCondition() == "PATH_NOT_FOUND":
                raise missing_file("data", path, plan.snapshot_id) from error
        raise
    # Spark looks twice, and passes over what went away between its two looks; a Connect server looks when a frame runs
    if backend.count_files(rows) not in {None, len(paths)}:
        found = {unquote(path) for path in rows.inputFiles()}
        gone = next((path for path in paths if spark_location(path) not in found), paths[0])
        raise missing_file("data", gone, plan.snapshot_id)
    return rows


def _position() -> tuple[Column, Column]:
    return F.col("_metadata.file_path").alias(_PATH), F.col("_metadata.row_index").alias(_ROW)


def _with_files(
    rows: DataFrame,
    files: Sequence[PlannedFile],
    sets: Sequence[Sequence[int | None]],
    bits: DataFrame | None,
    backend: SparkBackend,
) -> DataFrame:
    """The rows with the numbers of their files and what is known of these; a path that nobody knows is an error.

    Spark joins by one number several times as fast as by a text, so it gets the paths' hashes, as long as they differ.
    That an unknown path has the hash of a known one is as good as impossible.
    """
    paths = [spark_path(p.file.file_path) for p in files]
    hashes = [zlib.crc32(path.encode()) for path in paths]
    hashed = len(set(hashes)) == len(hashes)
    known = {
        _FILE: pa.array(range(len(files)), pa.int32()),
        _LOCATION: pa.array([p.file.file_path for p in files], pa.string()),
        _SPEC: pa.array([p.file.spec_id for p in files], pa.int32()),
    }
    known |= {f"{_SET} {n}": pa.array(numbers, pa.int32()) for n, numbers in enumerate(sets)}
    key = {_KNOWN: pa.array(hashes, pa.int64()) if hashed else pa.array(paths, pa.string())}
    about = backend.spark.createDataFrame(pa.table(key | known))
    if bits is not None:
        about = about.join(F.broadcast(bits.toDF(_MARKED, _BITS)), F.col(back_quoted(_MARKED)) == about[_FILE], "left")
    about = F.broadcast(about)
    path = F.crc32(rows[_PATH].cast("binary")) if hashed else rows[_PATH]
    joined = rows.join(about, path == about[_KNOWN], "left")
    unknown = F.raise_error(F.concat(F.lit("expected a data file of the plan, found "), rows[_PATH]))
    names = [*known, *([] if bits is None else [_BITS])]
    return joined.withColumns(
        {name: F.when(about[_FILE].isNotNull(), about[name]).otherwise(unknown) for name in names}
    )


def _is_unmarked(bits: Column, row: Column) -> Column:
    """Whether the bit of a row is not set; files without deleted rows have no bits."""
    number = F.get(bits, F.shiftright(row, _BITS_SHIFT).cast("int"))
    bit = F.getbit(number, row.bitwiseAND(BITS - 1).cast("int"))
    return F.coalesce(bit, F.lit(0)) == 0


def _in_one(file: Column, row: Column) -> Column:
    """The number of a file and that of a row in it as one, by which Spark joins faster than by two."""
    return F.shiftleft(file.cast("bigint"), _ROW_BITS).bitwiseOR(row)


def _asked_for(field: NestedField) -> Column:
    match field.id:
        case FILE.id:
            return F.col(back_quoted(_LOCATION)).alias(field.name)
        case POS.id:
            return F.col(back_quoted(_ROW)).alias(field.name)
        case SPEC_ID.id:
            return F.col(back_quoted(_SPEC)).alias(field.name)
    return _column(field)


def _as_in_table(column: NativeColumn) -> Column:
    return column.expression(None if column.stored is None else _shielded(column.stored))


def _shielded(field: NestedField) -> Column:
    """A column whose filters Spark does not push into files if it holds floats, by an expression that changes nothing.

    Statistics in files leave out NaN, and dictionaries take -0.0 and 0.0 for different: rows would be lost.
    """
    column = _column(field)
    if field.type in (FLOAT, DOUBLE):
        return F.nanvl(column, column)
    if isinstance(field.type, StructType) and any(f.type in (FLOAT, DOUBLE) for _, f in walk_fields(field.type.fields)):
        return F.when(column.isNotNull(), column)
    return column


def _column(field: NestedField) -> Column:
    return F.col(back_quoted(field.name))


_LEGAL = "/!$&'()*+,-.:;=@_~"
_SPELLED_ALIKE = re.compile(r"(?:file://|s3a://[a-z0-9.-]+)(?:/[A-Za-z0-9=%+_-][A-Za-z0-9=%+_.-]*)+")


def spark_location(location: str) -> str:
    """Where Spark finds a file: S3 through its S3A connector, whatever the metadata calls it."""
    if _SPELLED_ALIKE.fullmatch(location):
        return location
    if scheme_of(location) == "file":
        return f"file://{local_path(location)}"
    _, bucket, key = object_location(location)
    return f"s3a://{bucket}/{key}"


def spark_path(location: str) -> str:
    """The URI of a file, in which Java leaves letters of every script as they are."""
    if scheme_of(location) == "file":
        return f"file:{_encoded_path(local_path(location))}"
    _, bucket, key = object_location(location)
    return f"s3a://{bucket}/{_encoded_path(key)}"


def _encoded_path(path: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in _LEGAL) else _encoded(c) for c in path)


def _encoded(character: str) -> str:
    return quote(character, safe="") if character.isascii() or character.isspace() else character
