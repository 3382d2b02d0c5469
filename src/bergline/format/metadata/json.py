"""Table metadata of v1, v2 and v3 as JSON: reading is as lenient and as strict as Java, writing is exact."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from bergline.errors import BerglineError, FormatError, InvalidInputError, UnsupportedError
from bergline.format.encoding.integers import Int, Long, Milliseconds
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.metadata.history_json import (
    KNOWN_LOG,
    KNOWN_SNAPSHOTS,
    snapshot_log_json,
    snapshots_json,
    without_known_history,
)
from bergline.format.metadata.invariants import check_invariants
from bergline.format.metadata.refs import MAIN, SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import (
    FORMAT_VERSIONS,
    READ_SNAPSHOTS,
    ROW_LINEAGE_VERSION,
    EncryptedKey,
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    StatisticsFile,
    TableMetadata,
    continue_history,
    strip_trailing_slash,
)
from bergline.format.partition.layout_json import (
    render_order,
    render_schema,
    render_spec,
    render_spec_fields,
    with_field_ids,
    with_schema_ids,
)
from bergline.format.partition.sort_order import UNSORTED, SortOrder
from bergline.format.partition.spec import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from bergline.format.schema.schema import Schema

NO_SNAPSHOT = -1
_JSON = "_json"


class _Version(msgspec.Struct, rename="kebab"):
    format_version: Int


class _Wire(msgspec.Struct, rename="kebab"):
    """The JSON of any version. UNSET where a key may be missing but not null, None where it may be either."""

    format_version: Int
    location: str
    last_updated_ms: Milliseconds
    last_column_id: Int
    table_uuid: str | None = None
    last_sequence_number: Long | None = None
    schema: Schema | None = None
    current_schema_id: Int | None = None
    schemas: tuple[Schema, ...] | UnsetType = UNSET
    partition_spec: tuple[PartitionField, ...] | None = None
    default_spec_id: Int | None = None
    partition_specs: tuple[PartitionSpec, ...] | UnsetType = UNSET
    last_partition_id: Int | None = None
    default_sort_order_id: Int | None = None
    sort_orders: tuple[SortOrder, ...] | UnsetType = UNSET
    properties: dict[str, str] = {}
    current_snapshot_id: Long | None = None
    next_row_id: Long | None = None
    encryption_keys: tuple[EncryptedKey, ...] = ()
    refs: dict[str, SnapshotRef] | UnsetType = UNSET
    snapshots: tuple[Snapshot, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] | None = None
    metadata_log: tuple[MetadataLogEntry, ...] | None = None


def parse_metadata(data: bytes, source: str, known: TableMetadata | None = None) -> TableMetadata:
    """Parse a metadata file; `source` is named in errors.

    `known` may be earlier metadata of the same table: history that both have is not parsed again.
    """
    if known is not None and (continued := _continued(data, known)) is not None:
        return continued
    wire = _decode(data, source)
    try:
        return check_invariants(_metadata(wire))
    except (FormatError, InvalidInputError) as error:
        raise FormatError(f"{error} in {source}") from error


def parse_unchecked_metadata(data: bytes, source: str) -> TableMetadata:
    """Parse a metadata file that may be inconsistent, to find out what is broken."""
    wire = _decode(data, source)
    try:
        return _metadata(wire)
    except InvalidInputError as error:
        raise FormatError(f"{error} in {source}") from error


def render_metadata(metadata: TableMetadata) -> bytes:
    """Serialize metadata with the keys that Java writes for its version, in Java's order."""
    return b"".join(render_metadata_parts(metadata))


def render_metadata_parts(metadata: TableMetadata) -> tuple[bytes, ...]:
    """Serialized metadata in parts, to be embedded in a larger text."""
    check_invariants(metadata)
    version = metadata.format_version
    current = metadata.current_snapshot_id
    wire: dict[str, Any] = {
        "format-version": version,
        "table-uuid": metadata.table_uuid,
        "location": metadata.location,
    }
    if version > 1:
        wire["last-sequence-number"] = metadata.last_sequence_number
    wire |= {"last-updated-ms": metadata.last_updated_ms, "last-column-id": metadata.last_column_id}
    if version == 1:
        wire["schema"] = _schema_json(metadata.schema)
    wire |= {
        "current-schema-id": metadata.current_schema_id,
        "schemas": [_schema_json(s) for s in metadata.schemas],
    }
    if version == 1:
        wire["partition-spec"] = render_spec_fields(metadata.spec)
    wire |= {
        "default-spec-id": metadata.default_spec_id,
        "partition-specs": [render_spec(s) for s in metadata.partition_specs],
        "last-partition-id": metadata.last_partition_id,
        "default-sort-order-id": metadata.default_sort_order_id,
        "sort-orders": [render_order(o) for o in metadata.sort_orders],
        "properties": metadata.properties,
        "current-snapshot-id": NO_SNAPSHOT if current is None and version < ROW_LINEAGE_VERSION else current,
    }
    if version >= ROW_LINEAGE_VERSION:
        wire["next-row-id"] = metadata.next_row_id
    if metadata.encryption_keys:
        wire["encryption-keys"] = metadata.encryption_keys
    wire["refs"] = metadata.refs
    behind = {"statistics": metadata.statistics, "partition-statistics": metadata.partition_statistics}
    return (
        encode_json(wire)[:-1],
        b',"snapshots":',
        *snapshots_json(metadata),
        b",",
        encode_json(behind)[1:-1],
        b',"snapshot-log":',
        *snapshot_log_json(metadata),
        b',"metadata-log":',
        encode_json(metadata.metadata_log),
        b"}",
    )


def _schema_json(schema: Schema) -> msgspec.Raw:
    """The JSON of a schema, cached on the schema: later metadata files of the table contain it too."""
    kept = schema.__dict__
    if _JSON not in kept:
        kept[_JSON] = msgspec.Raw(encode_json(render_schema(schema)))
    text: msgspec.Raw = kept[_JSON]
    return text


def _decode(data: bytes, source: str) -> _Wire:
    try:
        wire = decode_json(data, _Wire, source)
    except FormatError:
        # a later version may not decode: then report the unsupported version instead
        _check_version(decode_json(data, _Version, source).format_version, source)
        raise
    _check_version(wire.format_version, source)
    return wire


def _continued(data: bytes, known: TableMetadata) -> TableMetadata | None:
    """The metadata of a file that continues known metadata; None for any other file, and for a broken one."""
    short = without_known_history(data, known)
    if short is None:
        return None
    since = known.snapshots[known.__dict__.get(READ_SNAPSHOTS, 0) :]
    if _snapshots(since) is not since:  # they were committed in a form that differs from the one in which they are read
        return None
    try:
        wire = _decode(short, "")
        log = wire.snapshot_log or ()
        if wire.snapshots[:1] != (KNOWN_SNAPSHOTS,) or (known.snapshot_log and log[:1] != (KNOWN_LOG,)):
            return None
        wire.snapshots = (*known.snapshots, *_snapshots(wire.snapshots[1:]))
        wire.snapshot_log = (*known.snapshot_log, *log[1:]) if known.snapshot_log else log
        return check_invariants(continue_history(known, _metadata(wire, usual=True)), known)
    except BerglineError:  # parsing it as a whole gives an error with the right place
        return None


def _check_version(version: int, source: str) -> None:
    if version not in FORMAT_VERSIONS:
        raise UnsupportedError(
            f"expected a format version of 1 to {FORMAT_VERSIONS[-1]}, found {version} in {source}",
            hints=["a newer writer made this table; bergline reads and writes v1, v2 and v3"],
        )


def _metadata(wire: _Wire, *, usual: bool = False) -> TableMetadata:
    """The metadata of a file; `usual` says that its snapshots are in the form of current writers already."""
    version = wire.format_version
    current = None if wire.current_snapshot_id == NO_SNAPSHOT else wire.current_snapshot_id
    schemas, schema_id = _schemas(wire)
    specs, spec_id = _specs(wire)
    orders, order_id = _orders(wire)
    snapshots = wire.snapshots if usual else _snapshots(wire.snapshots)
    metadata = TableMetadata(
        format_version=version,
        table_uuid=wire.table_uuid if version == 1 else _required(wire, "table_uuid"),
        location=strip_trailing_slash(wire.location),
        last_sequence_number=0 if version == 1 else _required(wire, "last_sequence_number"),
        last_updated_ms=wire.last_updated_ms,
        last_column_id=wire.last_column_id,
        current_schema_id=schema_id,
        schemas=schemas,
        default_spec_id=spec_id,
        partition_specs=specs,
        last_partition_id=_last_partition_id(wire, specs),
        default_sort_order_id=order_id,
        sort_orders=orders,
        properties=wire.properties,
        current_snapshot_id=current,
        refs=_refs(wire, current),
        snapshots=snapshots,
        statistics=wire.statistics,
        partition_statistics=wire.partition_statistics,
        snapshot_log=wire.snapshot_log or (),
        metadata_log=wire.metadata_log or (),
        next_row_id=_required(wire, "next_row_id") if version >= ROW_LINEAGE_VERSION else 0,
        encryption_keys=wire.encryption_keys,
    )
    metadata.__dict__[READ_SNAPSHOTS] = len(snapshots)
    return metadata


def _schemas(wire: _Wire) -> tuple[tuple[Schema, ...], int]:
    """All schemas and the current id; old v1 writers wrote only the current schema, without an id."""
    if wire.format_version == 1 and wire.schemas is UNSET:
        given: tuple[Schema, ...] = (_required(wire, "schema"),)
        return with_schema_ids(given), given[0].schema_id or 0
    return with_schema_ids(_required(wire, "schemas")), _required(wire, "current_schema_id")


def _specs(wire: _Wire) -> tuple[tuple[PartitionSpec, ...], int]:
    """All partition specs and the default id; old v1 writers wrote only the fields of one spec."""
    if wire.format_version == 1 and wire.partition_specs is UNSET:
        return (with_field_ids(PartitionSpec(0, _required(wire, "partition_spec"))),), 0
    specs: tuple[PartitionSpec, ...] = _required(wire, "partition_specs")
    return tuple(map(with_field_ids, specs)), _required(wire, "default_spec_id")


def _last_partition_id(wire: _Wire, specs: tuple[PartitionSpec, ...]) -> int:
    if wire.format_version == 1 and wire.last_partition_id is None:
        return max((s.highest_field_id for s in specs), default=FIRST_PARTITION_FIELD_ID - 1)
    return int(_required(wire, "last_partition_id"))


def _orders(wire: _Wire) -> tuple[tuple[SortOrder, ...], int]:
    """All sort orders and the default id; old v1 writers wrote none."""
    if wire.format_version == 1 and wire.sort_orders is UNSET:
        return (UNSORTED,), UNSORTED.order_id
    return _required(wire, "sort_orders"), _required(wire, "default_sort_order_id")


def _refs(wire: _Wire, current: int | None) -> dict[str, SnapshotRef]:
    """The refs; the current snapshot is the head of `main` even if the file has no refs."""
    refs = {} if wire.refs is UNSET else wire.refs
    if current is None or MAIN in refs:
        return refs
    return {MAIN: SnapshotRef(current, SnapshotRefType.BRANCH)} | refs


def _snapshots(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    """The snapshots in the form of current writers, which nearly all have already."""
    usual = [
        s.manifests is None and "operation" in s.summary and (s.added_rows is None or s.first_row_id is not None)
        for s in snapshots
    ]
    return snapshots if all(usual) else tuple(map(_in_usual_form, snapshots))


def _in_usual_form(snapshot: Snapshot) -> Snapshot:
    """Old or incomplete snapshots normalized as in Java, so that they are written the same way."""
    changes: dict[str, Any] = {}
    if snapshot.summary and "operation" not in snapshot.summary:
        changes["summary"] = {"operation": str(SnapshotOperation.OVERWRITE)} | snapshot.summary
    if snapshot.manifest_list is not None:
        changes["manifests"] = None
    if snapshot.manifest_list is None:
        changes |= {"first_row_id": None, "added_rows": None, "key_id": None}
    elif snapshot.first_row_id is None:
        changes["added_rows"] = None
    return msgspec.structs.replace(snapshot, **changes)


def _required(wire: _Wire, name: str) -> Any:
    value = getattr(wire, name)
    if value is None or value is UNSET:
        raise FormatError(f"object missing required field `{name.replace('_', '-')}` at $")
    return value
