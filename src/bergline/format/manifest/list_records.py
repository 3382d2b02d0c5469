"""Manifest lists decoded record by record, each record once: the lists of a table share most of their records.

A short list is read faster this way than as columns. This module reads only what is plainly valid; everything else,
including anything malformed, is left to `columns`, which reports what is wrong.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from bergline.format.encoding.avro_container import Container
from bergline.format.encoding.avro_values import UnusualAvroError, read_long
from bergline.format.manifest.avro_schema import manifest_list_schema
from bergline.format.manifest.manifest import FieldSummary, ManifestContent, ManifestFile

MOST_RECORDS: Final = 4096
"""Longer lists are read as columns."""
_MOST_KEPT = 2**13
_INTS = range(-(2**31), 2**31)

DecodeAt = Callable[[bytes, int], tuple[Any, int]]
"""Reads the value at a position; returns it and where it ends."""


class _ListLayout:
    """How to read the records of one schema, and a cache of the records read."""

    def __init__(self, fields: list[tuple[str | None, DecodeAt]], kept_as: str | None) -> None:
        self._fields = fields
        self._kept_as = kept_as
        self._known: dict[bytes, tuple[bytes, ManifestFile]] = {}
        """Records by the manifest path with which they begin."""

    def manifests(self, data: bytes, records: int) -> list[ManifestFile]:
        """The manifests of this many records; raises for anything that is not plainly valid."""
        known = self._known
        found: list[ManifestFile] = []
        at = 0
        for _ in range(records):
            length, start = read_long(data, at)
            path = data[start : start + length]
            kept = known.get(path)
            if kept is not None and data.startswith(kept[0], at):
                at += len(kept[0])
                found.append(kept[1])
                continue
            manifest, end = self._manifest(data, at)
            self._keep(path, data[at:end], manifest)
            found.append(manifest)
            at = end
        if at != len(data):
            raise UnusualAvroError
        return found

    def _manifest(self, data: bytes, at: int) -> tuple[ManifestFile, int]:
        values: dict[str, Any] = {}
        for name, read in self._fields:
            value, at = read(data, at)
            if name is not None:
                values[name] = value
        if values.get("manifest_length") is None or values.get("added_snapshot_id") is None:
            raise UnusualAvroError
        if any(values.get(name, 0) not in _INTS for name in _SMALL if values.get(name) is not None):
            raise UnusualAvroError
        if values.get("partition_spec_id") is None or (content := values.get("content") or 0) not in (0, 1):
            raise UnusualAvroError
        values["content"] = ManifestContent(content)
        for name in ("sequence_number", "min_sequence_number"):
            values[name] = values.get(name) or 0
        return ManifestFile(**values), at

    def _keep(self, path: bytes, record: bytes, manifest: ManifestFile) -> None:
        if self._kept_as is not None:  # exactly as we would write it
            manifest.__dict__[self._kept_as] = record
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
        self._known[path] = record, manifest


def read_list_records(container: Container) -> list[ManifestFile] | None:
    """The manifests of a list; None if it is long, or unusual in any way."""
    layout = _layout(container.metadata["avro.schema"]) if container.records <= MOST_RECORDS else None
    if layout is None:
        return None
    try:
        return layout.manifests(container.data, container.records)
    except (UnusualAvroError, IndexError, UnicodeDecodeError):
        return None


@lru_cache(maxsize=16)
def _layout(schema: bytes) -> _ListLayout | None:
    own = {msgspec.json.encode(manifest_list_schema(version)): str(version) for version in (1, 2, 3)}
    try:
        fields = _fields(msgspec.json.decode(schema), _COLUMNS)
    except (UnusualAvroError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        return None
    is_first = bool(fields) and fields[0] == ("manifest_path", _string)
    return _ListLayout(fields, own.get(schema)) if is_first else None


def _fields(schema: Any, columns: dict[int, tuple[str, str]]) -> list[tuple[str | None, DecodeAt]]:
    """The fields of a record in order; unknown ones have no name."""
    if schema["type"] != "record":
        raise UnusualAvroError
    fields: list[tuple[str | None, DecodeAt]] = []
    for field in schema["fields"]:
        if not isinstance(field, dict) or not isinstance(field.get("field-id"), int):
            raise UnusualAvroError
        name, kind = columns.get(field["field-id"], (None, ""))
        found, read = _type(field["type"])
        if name is not None and (found != kind or any(name == other for other, _ in fields)):
            raise UnusualAvroError
        fields.append((name, read))
    return fields


def _type(schema: Any) -> tuple[str, DecodeAt]:
    """The kind of value that a type has, and how to read it."""
    match schema:
        case ["null", other]:
            kind, read = _type(other)
            return kind, _optional(read)
        case {"type": "array", "items": {"type": "record"} as items}:
            return "summaries", _summaries(_fields(items, _SUMMARY_COLUMNS))
        case str(kind) if kind in _READS:
            return _READS[kind]
    raise UnusualAvroError


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = read_long(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise UnusualAvroError
    return data[at:end], end


def _string(data: bytes, at: int) -> tuple[str, int]:
    value, at = _bytes(data, at)
    return value.decode(), at


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    byte = data[at]
    if byte > 1:
        raise UnusualAvroError
    return byte == 1, at + 1


def _optional(read: DecodeAt) -> DecodeAt:
    def read_optional(data: bytes, at: int) -> tuple[Any, int]:
        branch = data[at]
        if branch == 2:  # noqa: PLR2004  (1 in zig-zag)
            return read(data, at + 1)
        if branch:
            raise UnusualAvroError
        return None, at + 1

    return read_optional


def _summaries(fields: list[tuple[str | None, DecodeAt]]) -> DecodeAt:
    def read_summaries(data: bytes, at: int) -> tuple[tuple[FieldSummary, ...], int]:
        found: list[FieldSummary] = []
        count, at = read_long(data, at)
        while count:
            if not 0 < count <= len(data):
                raise UnusualAvroError
            for _ in range(count):
                values: dict[str, Any] = {}
                for name, read in fields:
                    value, at = read(data, at)
                    if name is not None:
                        values[name] = value
                if values.get("contains_null") is None:
                    raise UnusualAvroError
                found.append(FieldSummary(**values))
            count, at = read_long(data, at)
        return tuple(found), at

    return read_summaries


_READS: dict[str, tuple[str, DecodeAt]] = {
    "int": ("number", read_long),
    "long": ("number", read_long),
    "string": ("string", _string),
    "bytes": ("bytes", _bytes),
    "boolean": ("boolean", _boolean),
}
_SMALL = ("partition_spec_id", "added_files_count", "existing_files_count", "deleted_files_count")
_COLUMNS = {
    500: ("manifest_path", "string"),
    501: ("manifest_length", "number"),
    502: ("partition_spec_id", "number"),
    517: ("content", "number"),
    515: ("sequence_number", "number"),
    516: ("min_sequence_number", "number"),
    503: ("added_snapshot_id", "number"),
    504: ("added_files_count", "number"),
    505: ("existing_files_count", "number"),
    506: ("deleted_files_count", "number"),
    512: ("added_rows_count", "number"),
    513: ("existing_rows_count", "number"),
    514: ("deleted_rows_count", "number"),
    507: ("partitions", "summaries"),
    519: ("key_metadata", "bytes"),
    520: ("first_row_id", "number"),
}
_SUMMARY_COLUMNS = {
    509: ("contains_null", "boolean"),
    518: ("contains_nan", "boolean"),
    510: ("lower_bound", "bytes"),
    511: ("upper_bound", "bytes"),
}
