"""View metadata as JSON."""

import msgspec

from bergline.errors import FormatError, UnsupportedError
from bergline.format.encoding.integers import Int
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.partition.layout_json import render_schema, with_schema_ids
from bergline.format.view.view_metadata import VIEW_FORMAT_VERSION, ViewMetadata, check_view_invariants


class _Version(msgspec.Struct, rename="kebab"):
    format_version: Int


def parse_view_metadata(data: bytes, source: str) -> ViewMetadata:
    """Parse a view metadata file; `source` is named in errors."""
    try:
        view = decode_json(data, ViewMetadata, source)
    except FormatError:
        _check_version(decode_json(data, _Version, source).format_version, source)
        raise
    _check_version(view.format_version, source)
    try:
        return check_view_invariants(msgspec.structs.replace(view, schemas=with_schema_ids(view.schemas)))
    except FormatError as error:
        raise FormatError(f"{error} in {source}") from error


def render_view_metadata(view: ViewMetadata) -> bytes:
    """Serialize view metadata, keys in Java's order."""
    check_view_invariants(view)
    properties = {"properties": view.properties} if view.properties else {}
    return encode_json(
        {
            "view-uuid": view.view_uuid,
            "format-version": view.format_version,
            "location": view.location,
            **properties,
            "schemas": [render_schema(s) for s in view.schemas],
            "current-version-id": view.current_version_id,
            "versions": view.versions,
            "version-log": view.version_log,
        }
    )


def _check_version(version: int, source: str) -> None:
    if version != VIEW_FORMAT_VERSION:
        raise UnsupportedError(f"expected view format version {VIEW_FORMAT_VERSION}, found {version} in {source}")
