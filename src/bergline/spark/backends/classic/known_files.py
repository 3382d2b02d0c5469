"""Files handed to Spark's own reader as the plan knows them: Spark looks at none of them before it reads it.

Spark's `MetadataLogFileIndex`, made for the output of streams, takes its list of files as it is and never lists a
directory. One is made here from an empty log, then filled with files, and what is known of each file becomes the
values of its partition. Spark's own expressions make all the Java objects at once, so that the number of calls to the
JVM does not grow with the number of files. Why: docs/decisions/0036-constants-of-files.md
"""

import atexit
import functools
import hashlib
import os
import pickle
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.spark.backends.classic.followed_index import FollowedIndex
from bergline.spark.backends.classic.java_classes import client_of, java_class, java_member, scala_list, session_facts
from bergline.spark.backends.classic.parsed import frame_of
from bergline.spark.backends.classic.projections import projected
from bergline.spark.runtime.backend import ROW_INDEX, KnownFiles

_SQL = "org.apache.spark.sql"
_SOURCES = f"{_SQL}.execution.datasources"
_INDEXES = tuple(f"{_SQL}.execution.streaming{place}.MetadataLogFileIndex" for place in (".runtime", ""))
_STATUS, _PATH, _BITS = "org.apache.hadoop.fs.FileStatus", "org.apache.hadoop.fs.Path", "java.util.BitSet"
_VIEW = "scala.collection.SeqView"
_WITHOUT_PARTITIONS = (("recursiveFileLookup", "true"),)
_BLOCK = 128 * 1024 * 1024
_NOWHERE = "file:/"
_WIDTHS = {"int": 4, "bigint": 8, "string": 20, "binary": 100}
"""What Spark reckons with for a value of each type of constant."""
_ROW_WIDTH = 8
"""What it adds for each row."""
_MOST_KEPT = 64 * 1024 * 1024
"""So many bytes of lists are kept, for the next use of a table: by the same list Spark knows the same rows."""


class _Known(NamedTuple):
    """A file index of Spark's, and which rows of its files are deleted: a sequence of sets of bits."""

    index: Any
    deleted: Any


class _KeptIndexes:
    """Indexes by the files that are in them; the least recently used are dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._indexes: OrderedDict[Hashable, tuple[int, _Known]] = OrderedDict()

    def find(self, key: Hashable) -> _Known | None:
        with self._lock:
            if key not in self._indexes:
                return None
            self._indexes.move_to_end(key)
            return self._indexes[key][1]

    def keep(self, key: Hashable, size: int, index: _Known) -> None:
        with self._lock:
            self._indexes[key] = size, index
            while len(self._indexes) > 1 and sum(size for size, _ in self._indexes.values()) > _MOST_KEPT:
                self._indexes.popitem(last=False)


_KEPT = _KeptIndexes()
_EVALUATION = threading.Lock()
"""Held while Spark's expressions are evaluated: they keep the item at hand in themselves."""


def known_files(
    schema: T.StructType,
    options: Mapping[str, str],
    files: KnownFiles,
    texts: Sequence[str],
    spark: SparkSession,
    *,
    file_format: str,
) -> DataFrame | None:
    """What texts make of the rows of Parquet files that are not deleted; None if no such index can be made."""
    java: Any = spark._jsparkSession  # noqa: SLF001  (nothing public takes files and their constants)
    client = client_of(spark)
    if _row_index(client) != ROW_INDEX:
        return None
    try:
        known, (stored, width) = _find_or_make(files, spark), _stored(client, schema.json())
        index, constants = known.index, _struct(client, files.constants_ddl)
        if files.followed is not None:
            make = lambda found: _find_or_make(found, spark).index  # noqa: E731
            size, scale = sum(files.sizes), _share(width, files)
            index = FollowedIndex(index, files.followed, make, spark, partitions=constants, size=size, scale=scale)
        relation = java_class(client, f"{_SOURCES}.HadoopFsRelation")(
            index,
            constants,
            stored,
            _object(client, "scala.None"),
            _format(client, file_format),
            _options(client, tuple(options.items())),
            java,
        )
        plan = _object(client, f"{_SOURCES}.LogicalRelation").apply(relation, False)
        conditions = [] if known.deleted is None else [_is_left(client, known.deleted, files.number)]
        if files.later:
            conditions.append(_is_left_later(client, files.later))
        for condition in conditions:
            plan = java_class(client, f"{_SQL}.catalyst.plans.logical.Filter")(condition, plan)
        return frame_of(projected(plan, texts, spark), spark)  # analyzed once, as a whole
    except (Py4JError, PySparkException):  # a Spark that calls them otherwise
        return None


@functools.lru_cache(maxsize=64)
def _stored(client: Any, schema: str) -> tuple[Any, int]:
    """The columns of files with the one that numbers rows, and how wide Spark takes the others together to be."""
    stored = java_member(client, f"{_SQL}.types.DataType", "fromJson")(schema).asNullable()
    return stored.add(ROW_INDEX, "bigint"), int(stored.defaultSize())


@functools.lru_cache(maxsize=4)
def _format(client: Any, class_name: str) -> Any:
    """A reader of files, which is the same for all of them."""
    return java_class(client, class_name)()


def _share(width: int, files: KnownFiles) -> float:
    """How much wider rows are, as Spark reckons, than those that files have.

    Spark's optimizer takes the size of files for that of rows with all columns, and a projection of some for as much
    smaller. The columns that hide here would make a table look smaller than it is, and joins would broadcast it.
    """
    own = _ROW_WIDTH + width
    hidden = _WIDTHS["bigint"] + sum(_WIDTHS[type_] for type_, _ in files.constants.values())
    return (own + hidden) / own


def _find_or_make(files: KnownFiles, spark: SparkSession) -> _Known:
    # the message to the JVM is also the key: two plans with the same files are the same relation to Spark, which then
    # reuses what it has cached or exchanged
    columns = [values for _, values in files.constants.values()]
    constants = list(zip(*columns, strict=True)) if columns else [()] * len(files.paths)
    told = pickle.dumps((list(zip(files.paths, files.sizes, constants, strict=True)), files.deleted), protocol=4)
    key = session_facts(spark).session_id, files.constants_ddl, hashlib.sha256(told).digest()
    known = _KEPT.find(key)
    if known is None:
        known = _made_of(told, files, spark)
        _KEPT.keep(key, len(told), known)
    return known


def _made_of(told: bytes, files: KnownFiles, spark: SparkSession) -> _Known:
    # One message for all files, which the unpickler that PySpark brings along reads. Expressions then make Java objects
    # of it; a call for each field of each file would take longer than most queries.
    client = client_of(spark)
    make = _makers(client, files.constants_ddl)
    row = make.convert.apply(java_class(client, "net.razorvine.pickle.Unpickler")().loads(told))
    index = _empty_index(client, spark, () if files.constants else _WITHOUT_PARTITIONS)
    leaves = index.leafFiles()
    with _EVALUATION:
        leaves.addAll(make.files.eval(row))  # the index's own map of paths to statuses, which it lets us change
        partitions = make.partitions.eval(row) if files.constants else None
        # plans show a view in a few words and compare it by identity; they would show and compare a sequence's bits
        deleted = None if files.deleted is None else make.deleted.eval(row).view()
    if partitions is not None:
        # Each file is a partition of its own, so that its constants are values of a partition. Spark looks up the files
        # of a partition by its path: here that is the path of the file. Nothing public sets these two fields.
        statuses = leaves.values().toArray(_tag(client, _STATUS))
        each = getattr(_object(client, "scala.collection.ArrayOps"), "grouped$extension")(statuses, 1)
        by_path = getattr(_object(client, "scala.collection.immutable.Map"), "from")(leaves.keysIterator().zip(each))
        _field(client, "leafDirToChildrenFiles").set(index, by_path)
        spec = java_class(client, f"{_SOURCES}.PartitionSpec")(_struct(client, files.constants_ddl), partitions)
        _field(client, "cachedPartitionSpec").set(index, spec)
    _field(client, "path").set(index, java_class(client, _PATH)(_common_directory(files)))  # shown in plans
    return _Known(index, deleted)


def _common_directory(files: KnownFiles) -> str:
    """The directory that all files are in."""
    paths = files.paths
    if not paths:
        return _NOWHERE
    return os.path.commonprefix([min(paths), max(paths)]).rpartition("/")[0]  # noqa: RUF071  (cut at a slash)


def _empty_index(client: Any, spark: SparkSession, options: tuple[tuple[str, str], ...]) -> Any:
    path = java_class(client, _PATH)(f"file://{_empty_log()}")
    make, session = java_class(client, _index_name(client)), spark._jsparkSession  # noqa: SLF001
    return make(session, path, _options(client, options), _object(client, "scala.None"))


@functools.lru_cache(maxsize=1)
def _empty_log() -> str:
    """A directory of this process in which Spark finds no list of files; Spark creates it again if it is gone."""
    directory = tempfile.mkdtemp(prefix="bergline-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _is_left(client: Any, deleted: Any, number: str) -> Any:
    """Whether the bit of a row is not set in the bits of its file, which is known by its number."""
    bits = _new(client, "Literal", deleted, _object_type(client, _VIEW))
    own = _invoke(client, bits, "apply", _object_type(client, _BITS), _parsed(client, number))
    boolean = _object(client, f"{_SQL}.types.BooleanType")
    return _new(client, "Not", _invoke(client, own, "get", boolean, _row_as_int(client)))


@functools.lru_cache(maxsize=4)
def _is_left_later(client: Any, bits: str) -> Any:
    """Whether the bit of a row is not set in a constant of its file: no such bits, or fewer, delete nothing."""
    byte = _object(client, f"{_SQL}.types.ByteType")
    place = _new(client, "ShiftRight", _row(client), _parsed(client, "3"))
    array = _java_class(client, "java.lang.reflect.Array")
    found = _static_invoke(client, array, byte, "getByte", _parsed(client, bits), _int(client, place))
    bit = _new(
        client, "BitwiseGet", found, _int(client, _new(client, "BitwiseAnd", _row(client), _parsed(client, "7L")))
    )
    unset = _new(client, "EqualTo", bit, _parsed(client, "0Y"))
    is_beyond = _new(client, "LessThanOrEqual", _parsed(client, f"length({bits})"), place)
    nothing = _new(client, "Or", _parsed(client, f"{bits} IS NULL"), is_beyond)
    return _new(client, "If", nothing, _parsed(client, "true"), unset)  # which never looks beyond the bytes


@functools.lru_cache(maxsize=4)
def _row(client: Any) -> Any:
    """The place of a row in its file. Spark knows no other name for it that is not in a struct made for each row.

    A reader that did not fill in this column would leave it null: that is an error, not a row that is left.
    """
    return _new(client, "objects.AssertNotNull", _parsed(client, ROW_INDEX), scala_list(client))


@functools.lru_cache(maxsize=4)
def _row_index(client: Any) -> str:
    """What this version of Spark calls the column."""
    return str(_object(client, f"{_SOURCES}.parquet.ParquetFileFormat").ROW_INDEX_TEMPORARY_COLUMN_NAME())


@functools.lru_cache(maxsize=4)
def _row_as_int(client: Any) -> Any:
    return _int(client, _row(client))


def _int(client: Any, value: Any) -> Any:
    """A number of 64 bits as one of 32."""
    math = _java_class(client, "java.lang.Math")
    return _static_invoke(client, math, _object(client, f"{_SQL}.types.IntegerType"), "toIntExact", value)


class _Makers(NamedTuple):
    """Expressions that make the objects of an index from a row with an array of files and one of bits."""

    convert: Any
    """Makes the row of Java's objects."""
    files: Any
    partitions: Any
    deleted: Any


@functools.lru_cache(maxsize=32)
def _makers(client: Any, constants: str) -> _Makers:
    type_ = _struct(
        client, f"files array<struct<path: string, size: bigint, own: struct<{constants}>>>, deleted array<binary>"
    )
    files, deleted = (field.dataType() for field in type_.fields())
    nothing = _object(client, "scala.None")
    file = _new(client, "objects.LambdaVariable", "file", files.elementType(), True, 1)
    path, size, own = (_new(client, "GetStructField", file, place, nothing) for place in range(3))
    located = _made(client, _PATH, _invoke(client, path, "toString", _object_type(client, "java.lang.String")))
    others = (_parsed(client, text) for text in ("false", "1", f"{_BLOCK}L", "0L"))
    status = _made(client, _STATUS, size, *others, located)
    bits = _new(client, "objects.LambdaVariable", "bits", deleted.elementType(), True, 2)
    set_ = _static_invoke(client, _java_class(client, _BITS), _object_type(client, _BITS), "valueOf", bits)
    return _Makers(
        _object(client, f"{_SQL}.execution.python.EvaluatePython").makeFromJava(type_),
        _mapped(client, file, _made(client, "scala.Tuple2", located, status), files, 0),
        _mapped(client, file, _made(client, f"{_SOURCES}.PartitionPath", own, located), files, 0),
        _mapped(client, bits, set_, deleted, 1),
    )


def _mapped(client: Any, item: Any, made: Any, type_: Any, place: int) -> Any:
    """A sequence of what is made of each item of an array in a row."""
    array = _new(client, "BoundReference", place, type_, True)
    sequence = java_class(client, "scala.Some")(_java_class(client, "scala.collection.Seq"))
    return _new(client, "objects.MapObjects", item, made, array, sequence)


def _made(client: Any, class_name: str, *arguments: Any) -> Any:
    """A new object of a class."""
    class_, type_ = _java_class(client, class_name), _object_type(client, class_name)
    given = scala_list(client, *arguments), scala_list(client)
    return _new(client, "objects.NewInstance", class_, *given, False, type_, _object(client, "scala.None"))


def _invoke(client: Any, target: Any, name: str, type_: Any, *arguments: Any) -> Any:
    """What a method gives."""
    given = scala_list(client, *arguments), scala_list(client)
    return _new(client, "objects.Invoke", target, name, type_, *given, True, True, True)


def _static_invoke(client: Any, class_: Any, type_: Any, name: str, *arguments: Any) -> Any:
    """What a static method gives."""
    given = scala_list(client, *arguments), scala_list(client)
    return _new(
        client, "objects.StaticInvoke", class_, type_, name, *given, True, True, True, _object(client, "scala.None")
    )


def _new(client: Any, class_name: str, *args: Any) -> Any:
    return java_class(client, f"{_SQL}.catalyst.expressions.{class_name}")(*args)


def _object(client: Any, class_name: str) -> Any:
    return java_member(client, f"{class_name}$", "MODULE$")


def _java_class(client: Any, name: str) -> Any:
    return java_member(client, "java.lang.Class", "forName")(name)


@functools.lru_cache(maxsize=64)
def _parsed(client: Any, text: str) -> Any:
    return _object(client, f"{_SQL}.catalyst.parser.CatalystSqlParser").parseExpression(text)


@functools.lru_cache(maxsize=64)
def _object_type(client: Any, class_name: str) -> Any:
    return java_class(client, f"{_SQL}.types.ObjectType")(_java_class(client, class_name))


@functools.lru_cache(maxsize=64)
def _struct(client: Any, ddl: str) -> Any:
    if not ddl:
        return java_class(client, f"{_SQL}.types.StructType")()
    return java_member(client, f"{_SQL}.types.StructType", "fromDDL")(ddl)


@functools.lru_cache(maxsize=64)
def _options(client: Any, options: tuple[tuple[str, str], ...]) -> Any:
    found = java_class(client, "java.util.HashMap")()
    for key, value in options:
        found.put(key, value)
    return java_member(client, "org.apache.spark.api.python.PythonUtils", "toScalaMap")(found)


@functools.lru_cache(maxsize=8)
def _tag(client: Any, class_name: str) -> Any:
    return _object(client, "scala.reflect.ClassTag").apply(_java_class(client, class_name))


@functools.lru_cache(maxsize=8)
def _field(client: Any, name: str) -> Any:
    """A field of an index that no public method sets."""
    field = _java_class(client, _index_name(client)).getDeclaredField(name)
    field.setAccessible(True)
    return field


@functools.lru_cache(maxsize=4)
def _index_name(client: Any) -> str:
    """What this version of Spark calls the index."""
    is_loadable = java_member(client, "org.apache.spark.util.Utils", "classIsLoadable")
    return next((name for name in _INDEXES if is_loadable(name)), _INDEXES[0])
