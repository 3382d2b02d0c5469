"""How the files of a table are written, derived from its properties."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from bergline.datafiles.write.metrics_mode import MetricsModes, metrics_modes
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.metadata.table_metadata import TableMetadata, positive_property
from bergline.format.partition.sort_order import UNSORTED
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema
from bergline.format.types.types import BOOLEAN, DecimalType, FixedType, PrimitiveType, StructType
from bergline.io.locations import absolute_location, join

_DEFAULT_TARGET_FILE_SIZE = 512 * 1024 * 1024
_DEFAULT_DELETE_FILE_SIZE = 64 * 1024 * 1024
_ROW_GROUP_BYTES = 128 * 1024 * 1024
_PAGE_BYTES = 1024 * 1024
_DICTIONARY_BYTES = 2 * 1024 * 1024
_BLOOM_FILTER_BYTES = 1024 * 1024
_FALSE_POSITIVES = 0.01
BLOOM_FILTER_COLUMN = "write.parquet.bloom-filter-enabled.column."
_FALSE_POSITIVES_COLUMN = "write.parquet.bloom-filter-fpp.column."
_CODECS = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "brotli": "brotli",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "uncompressed": "none",
}
_LEVELS = {"zstd": (1, 22), "gzip": (0, 9), "brotli": (0, 11)}
_EMPTY = StructType(())
_TOTALS = ("total-files-size", "total-data-files", "total-records")
_TELLING_BYTES = 1024 * 1024
_ENCRYPTION_KEY = "encryption.key-id"
_DATA = "write."
_CODEC, _LEVEL = "compression-codec", "compression-level"


class BloomFilter(NamedTuple):
    """A column with a Bloom filter in each row group."""

    path: tuple[str, ...]
    false_positives: float
    """The false positive rate."""


class ParquetOptions(msgspec.Struct, frozen=True):
    """Layout options of a Parquet file."""

    compression_level: int | None = None
    row_group_bytes: int = _ROW_GROUP_BYTES
    page_bytes: int = _PAGE_BYTES
    dictionary_bytes: int = _DICTIONARY_BYTES
    bloom_filters: tuple[BloomFilter, ...] = ()
    bloom_filter_bytes: int = _BLOOM_FILTER_BYTES
    """The maximum size of a column's filter in a row group."""


class WriteSpec(msgspec.Struct, frozen=True):
    """What a writer needs to know about a table; small enough to send to executors."""

    schema: Schema
    spec: PartitionSpec
    data_location: str
    compression: str
    target_file_size: int
    options: ParquetOptions = ParquetOptions()
    metrics: MetricsModes = MetricsModes()
    sort_order_id: int = 0
    """The sort order of the rows to write; 0 for unsorted."""
    row_bytes: int | None = None
    """The average size of a row in the table's files, if these are large enough to tell."""

    @property
    def row_group_bytes(self) -> int:
        """The size in memory of a row group."""
        return max(1, min(self.options.row_group_bytes, self.target_file_size))


def write_spec(metadata: TableMetadata, *, check_types: bool = True) -> WriteSpec:
    """The write spec for new data files of a table; types that cannot be written are refused here, or by the writer."""
    if check_types:
        check_writable_types(metadata.schema)
    return _spec(metadata, _DATA, _DEFAULT_TARGET_FILE_SIZE)


def delete_write_spec(metadata: TableMetadata) -> WriteSpec:
    """The write spec for new delete files: that of data files, overridden by `write.delete.*`."""
    return _spec(metadata, "write.delete.", _DEFAULT_DELETE_FILE_SIZE)


def check_writable_types(schema: Schema) -> None:
    """UnsupportedError if a column cannot be written."""
    for name, field in schema.names.items():
        if field.type == _EMPTY:
            raise UnsupportedError(
                f"cannot write a struct without fields, which Parquet has no form for, found in column `{name}`",
                hints=["add a field to it, or drop the column"],
            )


def check_not_encrypted(metadata: TableMetadata) -> None:
    """UnsupportedError for a table whose files must be encrypted: ours would not be."""
    if metadata.encryption_keys or _ENCRYPTION_KEY in metadata.properties:
        raise UnsupportedError(f"cannot write to the encrypted table at {metadata.location}")


def _spec(metadata: TableMetadata, prefix: str, target_file_size: int) -> WriteSpec:
    check_not_encrypted(metadata)
    properties = metadata.properties
    order = next((o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id), UNSORTED)
    return WriteSpec(
        schema=metadata.schema,
        spec=metadata.spec,
        data_location=absolute_location(properties.get("write.data.path") or join(metadata.location, "data")),
        compression=_codec(properties, prefix),
        target_file_size=positive_property(metadata, f"{prefix}target-file-size-bytes", target_file_size),
        options=ParquetOptions(
            compression_level=compression_level(properties, prefix),
            row_group_bytes=_size(metadata, prefix, "row-group-size-bytes", _ROW_GROUP_BYTES),
            page_bytes=_size(metadata, prefix, "page-size-bytes", _PAGE_BYTES),
            dictionary_bytes=_size(metadata, prefix, "dict-size-bytes", _DICTIONARY_BYTES),
            bloom_filters=_bloom_filters(metadata) if prefix == _DATA else (),
            bloom_filter_bytes=_size(metadata, prefix, "bloom-filter-max-bytes", _BLOOM_FILTER_BYTES),
        ),
        metrics=metrics_modes(properties, metadata.schema, order),
        row_bytes=_row_bytes(metadata),
    )


def _bloom_filters(metadata: TableMetadata) -> tuple[BloomFilter, ...]:
    """The columns that should and can have one: values outside of lists and maps, except booleans."""
    wanted = [
        name.removeprefix(BLOOM_FILTER_COLUMN)
        for name, text in metadata.properties.items()
        if name.startswith(BLOOM_FILTER_COLUMN) and text.lower() == "true"
    ]
    schema, found = metadata.schema, []
    for name in wanted:
        field = schema.names.get(name)
        if field is None or not isinstance(field.type, PrimitiveType | DecimalType | FixedType):
            continue
        if (
            field.id in schema.paths
            and field.type != BOOLEAN
            and not any("." in part for part in schema.paths[field.id])
        ):
            found.append(BloomFilter(schema.paths[field.id], _false_positives(metadata.properties, name)))
    return tuple(found)


def _false_positives(properties: Mapping[str, str], column: str) -> float:
    key = f"{_FALSE_POSITIVES_COLUMN}{column}"
    text = properties.get(key, str(_FALSE_POSITIVES))
    if not re.fullmatch(r"0?\.[0-9]{1,9}", text) or not float(text):
        raise InvalidInputError(f"expected a number between 0 and 1 for property `{key}`, found `{text}`")
    return float(text)


def _row_bytes(metadata: TableMetadata) -> int | None:
    snapshot = metadata.current_snapshot
    totals = [] if snapshot is None else [snapshot.summary.get(name, "") for name in _TOTALS]
    if not totals or not all(re.fullmatch("[0-9]{1,18}", text) for text in totals):
        return None
    size, files, rows = map(int, totals)
    return max(1, size // rows) if rows and size >= files * _TELLING_BYTES > 0 else None


def check_codec(key: str, name: str) -> str:
    """Parquet's name of a codec; InvalidInputError for an unknown one."""
    if name.lower() not in _CODECS:
        raise InvalidInputError(f"expected a codec of {', '.join(_CODECS)} for property `{key}`, found `{name}`")
    return _CODECS[name.lower()]


def compression_level(properties: Mapping[str, str], prefix: str) -> int | None:
    """The compression level for a kind of file, if its codec has levels."""
    key = _key(properties, prefix, _LEVEL)
    text = properties.get(key)
    if text is None:
        return None
    codec = _codec(properties, prefix)
    least, most = _LEVELS.get(codec, (0, 99))
    if not re.fullmatch("[0-9]{1,2}", text) or not least <= int(text) <= most:
        raise InvalidInputError(
            f"expected a level of {least} to {most} of {codec} for property `{key}`, found `{text}`"
        )
    return int(text) if codec in _LEVELS else None


def _codec(properties: Mapping[str, str], prefix: str) -> str:
    key = _key(properties, prefix, _CODEC)
    return check_codec(key, properties.get(key, "zstd"))


def _key(properties: Mapping[str, str], prefix: str, name: str) -> str:
    """The property of a kind of file if it is set, otherwise that of data files."""
    key = f"{prefix}parquet.{name}"
    return key if key in properties else f"write.parquet.{name}"


def _size(metadata: TableMetadata, prefix: str, name: str, default: int) -> int:
    of_data = positive_property(metadata, f"write.parquet.{name}", default)
    return max(1, positive_property(metadata, f"{prefix}parquet.{name}", of_data))
