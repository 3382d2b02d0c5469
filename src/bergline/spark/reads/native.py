"""Files read by Spark's own Parquet reader, with constants of each file, by which deleted rows are left out.

Over Spark Connect, Spark looks up the files, and what is known of them comes by joins on their paths.

What it does must not depend on the session's settings: they are looked at when a frame is run, not when it is made.
"""

import re
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.errors import UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.schema.reserved import (
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POS,
    RESERVED_IDS,
    ROW_ID,
    SPEC_ID,
)
from bergline.io.fileio import FileIO
from bergline.io.locations import local_path, object_location, scheme_of
from bergline.quoting import back_quoted
from bergline.scan.plan import PlannedFile, ScanPlan, columns_to_read
from bergline.scan.planned_files import paths_of, sizes_of
from bergline.spark.pushdown.filter import spark_filter
from bergline.spark.reads.deletes import BITS, bit_frame, deleted_bits, deleted_keys, deleted_positions, key_sets
from bergline.spark.reads.groups import ReadGroup, are_marked
from bergline.spark.runtime.backend import ROW_INDEX, FollowedFiles, KnownFiles, SparkBackend
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
RelationOf = Callable[[Callable[[ScanPlan, Sequence[PlannedFile]], KnownFiles]], FollowedFiles]
"""Makes a relation that follows a table of how its files are made known to Spark."""
_PATH, _KNOWN, _ROW, _FILE, _MARKED, _BITS, _LATER, _LOCATION, _SPEC, _FIRST_ROW, _SEQUENCE, _SET, _KEY = (
    f"bergline {name}"
    for name in (
        "path",
        "known",
        "row",
        "file",
        "marked",
        "bits",
        "later",
        "at",
        "spec",
        "first",
        "sequence",
        "set",
        "key",
    )
)
_LINEAGE = {ROW_ID.id, LAST_UPDATED_SEQUENCE_NUMBER.id}
_TYPES = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string()}
_BITS_SHIFT = BITS.bit_length() - 1
_ROW_BITS = 40
"""No file has more rows than that."""


def read_native(
    plan: ScanPlan, group: ReadGroup, backend: SparkBackend, io: FileIO, place: RelationOf | None = None
) -> DataFrame:
    """The rows of files that `read_groups` gave to Spark's reader, or those that follow a table in a place of these."""
    wanted, files = columns_to_read(plan), group.files
    keys = key_sets(files, plan.key_columns) if group.has_deletes else []
    by_position = group.has_deletes and any(planned.position_deletes for planned in files)
    marked = by_position and are_marked(files)
    asked = {f.id for f in wanted.fields} & RESERVED_IDS
    names = {f.id: f.name for f in wanted.fields}
    names |= {c.field.id: f"{_KEY} {c.field.id}" for c in group.columns if c.field.id not in names}
    columns = {names[c.field.id]: c.value for c in group.columns}
    constants = _constants(files, [key.sets for key in keys], asked, range(len(files)) if by_position else None)
    if place is not None:
        return _followed(plan, group, constants, columns, asked, backend=backend, io=io, place=place)
    known = _known(plan, group, constants, backend, io, marked=marked) if backend.knows_files else None
    is_all = not keys and by_position == marked
    there = {**columns, **{name: back_quoted(name) for name in constants}, _ROW: ROW_INDEX}
    rows = None if known is None else _of_known(known, group, _wanted(plan, columns) if is_all else there, backend)
    if rows is not None and is_all:
        return _filtered(rows, plan, backend)
    if rows is None:
        rows = _looked_up(plan, group, constants, backend, io, columns=columns, marked=marked)
    if by_position and not marked:
        gone = F.broadcast(deleted_positions(files, plan.snapshot_id, backend, io))
        rows = rows.join(gone, _in_one(rows[_FILE], rows[_ROW]) == _in_one(gone["file"], gone["pos"]), "left_anti")
    for number, key in enumerate(keys):
        gone = F.broadcast(deleted_keys(key, plan, backend, io))
        same = rows[f"{_SET} {number}"] == gone["set"]
        for position, column in enumerate(key.columns):
            same &= rows[back_quoted(names[column.field_id])].eqNullSafe(gone[f"key{position}"])
        rows = rows.join(gone, same, "left_anti")
    there = {
        f.name: _reserved(f.id, name, back_quoted(_ROW)) if f.id in asked else name
        for f in wanted.fields
        for name in [back_quoted(f.name)]
    }
    return _filtered(_select(rows, there, backend), plan, backend)


def read_guard(rows: DataFrame, relation: FollowedFiles, backend: SparkBackend) -> DataFrame:
    """No rows, of the columns of others: to run them asks whether the table is still as it was."""
    texts = [back_quoted(name) for name in rows.columns]
    nothing = backend.known_files(rows.schema, _OPTIONS, KnownFiles((), (), {}, followed=relation), texts)
    return rows if nothing is None else rows.unionAll(nothing)


def _followed(
    plan: ScanPlan,
    group: ReadGroup,
    constants: dict[str, tuple[str, Sequence[Any]]],
    columns: dict[str, str | Column],
    asked: Collection[int],
    *,
    backend: SparkBackend,
    io: FileIO,
    place: RelationOf,
) -> DataFrame:
    """Rows of a relation whose files are looked up whenever it is read.

    Deleted rows of the files that there are now are in a literal, as those of all reads. That is part of the plan for
    good, so those of files that are found later are constants of each file.
    """
    files, takes_deletes = group.files, group.has_deletes
    by_position = _FILE in constants
    deleted = None
    if by_position:  # the last of these sets is for files that are found later: nothing
        deleted = [*deleted_bits(files, plan.snapshot_id, backend, io), b""]
    if takes_deletes:
        constants[_LATER] = "binary", [None] * len(files)

    def describe(then: ScanPlan, found: Sequence[PlannedFile]) -> KnownFiles:
        numbers = [len(files)] * len(found) if by_position else None
        about = _constants(found, [], asked, numbers)
        if takes_deletes:
            bits = deleted_bits(found, then.snapshot_id, backend, io)
            about[_LATER] = "binary", [some or None for some in bits]
        return KnownFiles([spark_location(path) for path in paths_of(found)], sizes_of(found), about)

    locations = [spark_location(path) for path in group.paths]
    later = back_quoted(_LATER) if takes_deletes else ""
    known = KnownFiles(
        locations, group.sizes, constants, deleted, back_quoted(_FILE), later=later, followed=place(describe)
    )
    rows = _of_known(known, group, _wanted(plan, columns), backend)
    if rows is None:
        raise UnsupportedError("this version of Spark takes no lists of files")
    return _filtered(rows, plan, backend)


def _of_known(
    known: KnownFiles, group: ReadGroup, columns: Mapping[str, str | Column], backend: SparkBackend
) -> DataFrame | None:
    """Columns of files that a plan knows; None if Spark must look up the files."""
    texts = _texts(columns)
    rows = backend.known_files(_stored(group), _OPTIONS, known, ["*"] if texts is None else texts)
    return rows if rows is None or texts is not None else _select(rows, columns, backend)


def _wanted(plan: ScanPlan, columns: Mapping[str, str | Column]) -> dict[str, str | Column]:
    """The columns that a plan asks for, of those that files have."""
    return {
        f.name: _reserved(f.id, columns.get(f.name), ROW_INDEX) if f.id in RESERVED_IDS else columns[f.name]
        for f in columns_to_read(plan).fields
    }


def _reserved(field_id: int, stored: object, row: str) -> str:
    """The value of a metadata column, of what a file stores of it, its constants, and a row's place in it."""
    first = back_quoted(_FIRST_ROW)
    match field_id:
        case FILE.id:
            return back_quoted(_LOCATION)
        case POS.id:
            return row
        case SPEC_ID.id:
            return back_quoted(_SPEC)
    inherited = f"{first} + {row}" if field_id == ROW_ID.id else back_quoted(_SEQUENCE)
    # spec: a file without a first row id has no row ids, whatever it stores
    return f"CASE WHEN {first} IS NOT NULL THEN coalesce({stored}, {inherited}) END"


def _filtered(rows: DataFrame, plan: ScanPlan, backend: SparkBackend) -> DataFrame:
    """The rows that a plan asks for, without columns that only its filter uses."""
    if plan.filter == ALWAYS_TRUE:
        return rows
    kept = rows.where(spark_filter(plan.filter, plan.table_schema))
    return backend.select_texts(kept, [back_quoted(f.name) for f in plan.schema.fields])


def _constants(
    files: Sequence[PlannedFile],
    sets: Sequence[Sequence[int | None]],
    asked: Collection[int],
    numbers: Sequence[int] | None,
) -> dict[str, tuple[str, Sequence[Any]]]:
    """What the rows of a file have in common, as far as it is needed: types in SQL, and the values for each file."""
    found: dict[str, tuple[str, Sequence[Any]]] = {f"{_SET} {n}": ("int", own) for n, own in enumerate(sets)}
    if numbers is not None:
        found[_FILE] = "int", numbers
    if FILE.id in asked:
        found[_LOCATION] = "string", paths_of(files)
    if SPEC_ID.id in asked:
        found[_SPEC] = "int", [planned.file.spec_id for planned in files]
    if _LINEAGE & set(asked):
        found[_FIRST_ROW] = "bigint", [planned.file.first_row_id for planned in files]
        found[_SEQUENCE] = "bigint", [planned.sequence_number for planned in files]
    return found


def _known(
    plan: ScanPlan,
    group: ReadGroup,
    constants: Mapping[str, tuple[str, Sequence[Any]]],
    backend: SparkBackend,
    io: FileIO,
    *,
    marked: bool,
) -> KnownFiles | None:
    """The files with constants of each; None if Spark must look them up."""
    if min(group.sizes) <= 0:
        return None
    deleted = deleted_bits(group.files, plan.snapshot_id, backend, io) if marked else None
    locations = [spark_location(path) for path in group.paths]
    return KnownFiles(locations, group.sizes, constants, deleted, back_quoted(_FILE))


def _looked_up(
    plan: ScanPlan,
    group: ReadGroup,
    constants: Mapping[str, tuple[str, Sequence[Any]]],
    backend: SparkBackend,
    io: FileIO,
    *,
    columns: Mapping[str, str | Column],
    marked: bool,
) -> DataFrame:
    """Columns of files that Spark looks up, with what is known of each file by a join."""
    rows = _open(plan, group, backend)
    if not group.has_deletes and not any(f.id in RESERVED_IDS for f in columns_to_read(plan).fields):
        return _select(rows, columns, backend)
    rows = _select(rows, {**columns, _PATH: "_metadata.file_path", _ROW: "_metadata.row_index"}, backend)
    bits = bit_frame(group.files, plan.snapshot_id, backend, io) if marked else None
    rows = _with_files(rows, group.files, constants, bits, backend)
    return rows.where(_is_unmarked(rows[_BITS], rows[_ROW])) if marked else rows


def _select(rows: DataFrame, columns: Mapping[str, str | Column], backend: SparkBackend) -> DataFrame:
    """These columns: all of them in one call if they have texts."""
    texts = _texts(columns)
    if texts is not None:
        return backend.select_texts(rows, texts)
    return rows.select(
        *((F.expr(value) if isinstance(value, str) else value).alias(name) for name, value in columns.items())
    )


def _texts(columns: Mapping[str, str | Column]) -> list[str] | None:
    """Columns as SQL; None if one of them has no text."""
    texts = [f"{value} AS {back_quoted(name)}" for name, value in columns.items() if isinstance(value, str)]
    return texts if len(texts) == len(columns) else None


def _stored(group: ReadGroup) -> T.StructType:
    """The columns that are read, under their names in files."""
    stored = [c.stored for c in group.columns if c.stored is not None]
    return T.StructType([T.StructField(f.name, spark_type(f.type, f.name)) for f in stored])


def _open(plan: ScanPlan, group: ReadGroup, backend: SparkBackend) -> DataFrame:
    """The columns that files have of those asked for, under their names in the files."""
    paths = group.paths
    reader = backend.spark.read.schema(_stored(group)).options(**_OPTIONS)
    try:
        rows = backend.load_files(reader, [spark_location(path) for path in paths])
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


def _with_files(
    rows: DataFrame,
    files: Sequence[PlannedFile],
    constants: Mapping[str, tuple[str, Sequence[Any]]],
    bits: DataFrame | None,
    backend: SparkBackend,
) -> DataFrame:
    """The rows with what is known of their files; a path that nobody knows is an error.

    Spark joins by one number several times as fast as by a text, so it gets the paths' hashes, as long as they differ.
    That an unknown path has the hash of a known one is as good as impossible.
    """
    paths = [spark_path(p.file.file_path) for p in files]
    hashes = [zlib.crc32(path.encode()) for path in paths]
    hashed = len(set(hashes)) == len(hashes)
    numbers = {_FILE: ("int", range(len(files)))}
    known = {name: pa.array(values, _TYPES[type_]) for name, (type_, values) in {**constants, **numbers}.items()}
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
