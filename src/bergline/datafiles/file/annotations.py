"""Annotations of columns in a Parquet footer that pyarrow does not write: VARIANT, GEOMETRY and GEOGRAPHY.

They are inserted into the footer when a file is closed; other engines recognize these columns only by them.
"""

from collections.abc import Mapping

from bergline.datafiles.file.thrift import field_header, read_struct_list, string_bytes, varint
from bergline.format.schema.schema import Schema
from bergline.format.types.types import EDGE_ALGORITHMS, VARIANT, GeographyType, GeometryType, IcebergType

_SCHEMA, _FIELD_ID, _LOGICAL = 2, 9, 10
_LENGTH, _MAGIC = 4, b"PAR1"
# fields of the union LogicalType, and Thrift's numbers of types
_VARIANT, _GEOMETRY, _GEOGRAPHY = 16, 17, 18
_BYTE, _I32, _BINARY, _STRUCT = 3, 5, 8, 12
_STOP = b"\0"
_SPECIFICATION_VERSION = b"\x01"


def annotations(schema: Schema) -> dict[int, bytes]:
    """The logical types to insert, encoded, by field id; empty if a schema needs none."""
    found = ((field_id, _logical_type(field.type)) for field_id, field in schema.ids.items())
    return {field_id: logical for field_id, logical in found if logical is not None}


def annotated(tail: bytes, logical_types: Mapping[int, bytes]) -> bytes:
    """The end of a Parquet file with logical types added to the columns with these field ids."""
    end = len(tail) - _LENGTH - len(_MAGIC)
    start = end - int.from_bytes(tail[end : end + _LENGTH], "little")
    footer, pieces, done = tail[start:end], [], 0
    for element, stop in read_struct_list(footer, _SCHEMA):
        logical = logical_types.get(element.get(_FIELD_ID, -1))
        if logical is not None:
            pieces += [footer[done:stop], field_header(_LOGICAL, _STRUCT, after=max(element)), logical]
            done = stop
    footer = b"".join([*pieces, footer[done:]])
    return tail[:start] + footer + len(footer).to_bytes(_LENGTH, "little") + _MAGIC


def _logical_type(type_: IcebergType) -> bytes | None:
    """A value of the union LogicalType."""
    match type_:
        case _ if type_ == VARIANT:
            kind, fields = _VARIANT, field_header(1, _BYTE) + _SPECIFICATION_VERSION
        case GeometryType(crs):
            kind, fields = _GEOMETRY, field_header(1, _BINARY) + string_bytes(crs)
        case GeographyType(crs, algorithm):
            kind, fields = _GEOGRAPHY, field_header(1, _BINARY) + string_bytes(crs)
            fields += field_header(2, _I32, after=1) + varint(EDGE_ALGORITHMS.index(algorithm))
        case _:
            return None
    return field_header(kind, _STRUCT) + fields + _STOP + _STOP
