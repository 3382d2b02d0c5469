"""Many files handed to Spark's own reader with the sizes that the plan knows: it does not look at each of them again.

What a stream has written, Spark reads by a list of files that it takes as it is and never makes again, the
`MetadataLogFileIndex`. One made of an empty log is filled with the statuses of files, in Hadoop's own encoding.
"""

import hashlib
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bergline.spark.backends.classic.catalyst import class_of

_LOG = "_spark_metadata"
_INDEX = "MetadataLogFileIndex"
_STATUS = "org.apache.hadoop.fs.FileStatus"
_AT_ONCE = 20_000
_MOST_KEPT = 100_000
"""The lists of so many files are kept, for the next use of a table: by the same list Spark knows the same rows."""


class _KeptIndexes:
    """Indexes by the files that are in them; the least recently used are dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._indexes: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()

    def find(self, key: Hashable) -> Any | None:
        with self._lock:
            if key not in self._indexes:
                return None
            self._indexes.move_to_end(key)
            return self._indexes[key][1]

    def keep(self, key: Hashable, files: int, index: Any) -> None:
        with self._lock:
            self._indexes[key] = files, index
            while len(self._indexes) > 1 and sum(count for count, _ in self._indexes.values()) > _MOST_KEPT:
                self._indexes.popitem(last=False)


_KEPT = _KeptIndexes()


def known_index(paths: Sequence[str], sizes: Sequence[int], file_format: str, spark: SparkSession) -> Any | None:
    """A file index of Spark's that has exactly these files; None if the session makes no such index."""
    session = spark._jsparkSession  # noqa: SLF001  (nothing public takes statuses of files)
    files = hashlib.sha256("\0".join((*paths, *map(str, sizes))).encode()).digest()
    key = (str(session.sessionUUID()), files)
    index = _KEPT.find(key)
    if index is not None:
        return index
    try:
        index = _empty_index(file_format, spark)
        if index is None:
            return None
        for start in range(0, len(paths), _AT_ONCE):
            _add(index, paths[start : start + _AT_ONCE], sizes[start : start + _AT_ONCE], spark)
        found = int(index.allFiles().size())
    except (Py4JError, PySparkException):  # a setting, or a Spark, by which this cannot be
        return None
    if found != len(paths):
        return None
    _KEPT.keep(key, len(paths), index)
    return index


def encoded_status(path: str, size: int) -> bytes:
    """A file as Hadoop's `FileStatus` reads it: the length of a message of protocol buffers, and the message."""
    name = path.encode()
    fields = (b"\x08\x02", b"\x12", _varint(len(name)), name, b"\x18", _varint(size), b"\x50\x01\x58\x00")
    message = b"".join(fields)  # a file, its path, its length; one copy, in blocks of nobody knows what
    return len(message).to_bytes(4, "big") + message


def _empty_index(file_format: str, spark: SparkSession) -> Any | None:
    """An index without files; None if the session takes no notice of logs."""
    with tempfile.TemporaryDirectory(prefix="bergline-") as directory:  # Spark reads it now, and never again
        Path(directory, _LOG).mkdir()
        reader = spark.read.format(file_format).schema("unused INT").option("recursiveFileLookup", "true")
        rows = reader._jreader.load(f"file://{directory}")  # noqa: SLF001
        index = rows.queryExecution().analyzed().collectLeaves().head().relation().location()
    return index if class_of(index) == _INDEX else None


def _add(index: Any, paths: Sequence[str], sizes: Sequence[int], spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    statuses = b"".join(encoded_status(path, size) for path, size in zip(paths, sizes, strict=True))
    java = jvm.java.io
    stream = java.DataInputStream(java.ByteArrayInputStream(len(paths).to_bytes(4, "big") + statuses))
    read = jvm.org.apache.hadoop.io.ArrayWritable(jvm.java.lang.Class.forName(_STATUS))
    read.readFields(stream)
    found = jvm.scala.Predef.genericWrapArray(read.toArray())
    index.leafFiles().addAll(found.zip(found))  # by themselves, since files are never looked up by their paths


def _varint(number: int) -> bytes:
    """A number as protocol buffers have it: seven bits to a byte, the lowest first."""
    found = bytearray()
    while number > 0x7F:  # noqa: PLR2004
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
