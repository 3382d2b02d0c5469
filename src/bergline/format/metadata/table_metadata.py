"""Table metadata: the complete state of a table in one immutable value."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Final

import msgspec

from bergline.arguments import check_text
from bergline.errors import FormatError, NotFoundError, UnsupportedError
from bergline.format.encoding.integers import Int, Long, Milliseconds, next_long
from bergline.format.metadata.properties import whole_number
from bergline.format.metadata.read_restrictions import ReadRestrictions
from bergline.format.metadata.refs import MAIN, SnapshotRef
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.partition.sort_order import SortOrder
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema

FORMAT_VERSIONS: Final = (1, 2, 3)
DEFAULT_FORMAT_VERSION: Final = 2
ROW_LINEAGE_VERSION: Final = 3
_LONGEST_ID = 19
ENCODED_SNAPSHOTS: Final = "_encoded_snapshots"
"""The attribute in which metadata caches the JSON of its first snapshots, possibly all (see `history_json`)."""
ENCODED_LOG: Final = "_encoded_log"
CHECKED_SNAPSHOTS: Final = "_checked_snapshots"
"""The attribute that says how many of its first snapshots have been checked (see `invariants`)."""
CHECKED_LOG: Final = "_checked_log"
READ_SNAPSHOTS: Final = "_read_snapshots"
"""The attribute that says how many of its first snapshots are exactly as read from a file (see `json`)."""


class SnapshotLogEntry(msgspec.Struct, frozen=True, rename="kebab", gc=False):
    """When a snapshot became current."""

    timestamp_ms: Milliseconds
    snapshot_id: Long


class MetadataLogEntry(msgspec.Struct, frozen=True, rename="kebab", gc=False):
    """An earlier metadata file, and when it was written."""

    timestamp_ms: Milliseconds
    metadata_file: str


class BlobMetadata(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One blob of a statistics file."""

    type: str
    snapshot_id: Long
    sequence_number: Long
    fields: tuple[Int, ...]
    properties: dict[str, str] = {}


class StatisticsFile(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A Puffin file of statistics for one snapshot."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Long
    file_footer_size_in_bytes: Long
    blob_metadata: tuple[BlobMetadata, ...]
    key_metadata: str | None = None


class PartitionStatisticsFile(msgspec.Struct, frozen=True, rename="kebab"):
    """A file of partition statistics for one snapshot."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Long


class EncryptedKey(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A metadata encryption key, encrypted by another key; base64 in JSON."""

    key_id: str
    encrypted_key_metadata: bytes
    encrypted_by_id: str | None = None
    properties: dict[str, str] = {}


class SeenAt(msgspec.Struct, frozen=True):
    """A branch, a tag or a time at which a table is seen."""

    name: str
    is_branch: bool


class TableMetadata(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The state of a table; a commit creates a new one (see `updates`)."""

    format_version: Int
    table_uuid: str | None
    """Old v1 tables have none until their next commit."""
    location: str
    last_sequence_number: Long
    last_updated_ms: Milliseconds
    last_column_id: Int
    current_schema_id: Int
    schemas: tuple[Schema, ...]
    default_spec_id: Int
    partition_specs: tuple[PartitionSpec, ...]
    last_partition_id: Int
    default_sort_order_id: Int
    sort_orders: tuple[SortOrder, ...]
    properties: dict[str, str]
    current_snapshot_id: Long | None
    refs: dict[str, SnapshotRef]
    snapshots: tuple[Snapshot, ...]
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    next_row_id: Long = 0
    encryption_keys: tuple[EncryptedKey, ...] = ()
    read_restrictions: ReadRestrictions | None = None
    """What the catalog that it was loaded from demands of readers; not part of metadata files."""
    seen_at: SeenAt | None = None
    """What the catalog shows as `main`, if that is not the table's own; not part of metadata files."""

    @cached_property
    def snapshots_by_id(self) -> dict[int, Snapshot]:
        """Snapshots by id."""
        return {s.snapshot_id: s for s in self.snapshots}

    @cached_property
    def specs_by_id(self) -> dict[int, PartitionSpec]:
        """Partition specs by id."""
        return {s.spec_id: s for s in self.partition_specs}

    @cached_property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schema_by_id(self.current_schema_id)

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec for new files."""
        return self.specs_by_id[self.default_spec_id]

    @property
    def sort_order(self) -> SortOrder:
        """The sort order for new files."""
        return next(o for o in self.sort_orders if o.order_id == self.default_sort_order_id)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The head of `main`."""
        return self.head(MAIN)

    @property
    def next_sequence_number(self) -> int:
        """The sequence number of the next snapshot; always 0 in v1."""
        return 0 if self.format_version == 1 else next_long("sequence number", self.last_sequence_number)

    def schema_for(self, spec: PartitionSpec) -> Schema:
        """The current schema, or one that still has the source columns of an older spec."""
        for schema in (self.schema, *reversed(self.schemas)):
            if all(f.source_id in schema.ids for f in spec.fields):
                return schema
        raise FormatError(f"expected the source columns of partition spec {spec.spec_id}, found none in any schema")

    def schema_by_id(self, schema_id: int) -> Schema:
        """A schema of the table's history."""
        for schema in self.schemas:
            if schema.schema_id == schema_id:
                return schema
        raise NotFoundError(f"no schema with id {schema_id}", kind="schema", name=str(schema_id))

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """The snapshot with this id."""
        try:
            return self.snapshots_by_id[snapshot_id]
        except KeyError:
            raise NotFoundError(f"no snapshot with id {snapshot_id}", kind="snapshot", name=str(snapshot_id)) from None

    def ref(self, name: str) -> SnapshotRef:
        """The branch or tag of this name."""
        check_text(name, "the name of a branch or tag")
        try:
            return self.refs[name]
        except KeyError:
            raise self.missing_ref(name, "branch or tag", self.refs) from None

    def missing_ref(self, name: str, what: str, known: Iterable[str]) -> NotFoundError:
        """The error for a missing branch or tag; `known` are the refs to suggest."""
        why = ""
        if name == MAIN:
            why = ": nothing was written to it yet" if self.snapshots else ": the table is empty"
        digits = name if name.isascii() and name.isdecimal() and len(name) <= _LONGEST_ID else ""
        is_id = bool(digits) and int(digits) in self.snapshots_by_id
        hints = [f"{name} is the id of a snapshot: give it as a number, not as text"] if is_id else []
        return NotFoundError(f"no {what} `{name}`{why}", kind="ref", name=name, known=known, hints=hints)

    def head(self, ref: str) -> Snapshot | None:
        """The snapshot that a ref names; None where the ref does not exist."""
        found = self.refs.get(ref)
        return None if found is None else self.snapshots_by_id[found.snapshot_id]

    def ancestors(self, snapshot_id: int | None) -> Iterator[Snapshot]:
        """A snapshot and its parents, newest first; expired parents end the walk."""
        seen: set[int] = set()
        while snapshot_id is not None and snapshot_id not in seen:
            snapshot = self.snapshots_by_id.get(snapshot_id)
            if snapshot is None:
                return
            seen.add(snapshot_id)
            yield snapshot
            snapshot_id = snapshot.parent_snapshot_id

    def is_ancestor(self, ancestor_id: int, of: int) -> bool:
        """Whether walking back from `of` meets `ancestor_id` (a snapshot is its own ancestor)."""
        return any(s.snapshot_id == ancestor_id for s in self.ancestors(of))


def changed(metadata: TableMetadata, **fields: Any) -> TableMetadata:
    """The metadata with some fields replaced, keeping what is known of history that stays as it is."""
    after = msgspec.structs.replace(metadata, **fields)
    known, passed_on = metadata.__dict__, after.__dict__
    if after.snapshots is metadata.snapshots:
        _pass_on(known, passed_on, "snapshots_by_id", ENCODED_SNAPSHOTS, READ_SNAPSHOTS)
        if after.last_sequence_number >= metadata.last_sequence_number:
            _pass_on(known, passed_on, CHECKED_SNAPSHOTS)
    if after.snapshot_log is metadata.snapshot_log:
        _pass_on(known, passed_on, ENCODED_LOG, CHECKED_LOG)
    return after


def with_new_snapshots(metadata: TableMetadata, new: Iterable[Snapshot]) -> TableMetadata:
    """The metadata with more snapshots behind those that it has."""
    after = changed(metadata, snapshots=(*metadata.snapshots, *new))
    _continue_snapshots(metadata, after)
    _pass_on(metadata.__dict__, after.__dict__, READ_SNAPSHOTS)
    return after


def with_log_entries(metadata: TableMetadata, entries: Iterable[SnapshotLogEntry]) -> TableMetadata:
    """The metadata with more entries at the end of its snapshot log."""
    after = changed(metadata, snapshot_log=(*metadata.snapshot_log, *entries))
    _pass_on(metadata.__dict__, after.__dict__, ENCODED_LOG, CHECKED_LOG)
    return after


def continue_history(known: TableMetadata, metadata: TableMetadata) -> TableMetadata:
    """The metadata, whose snapshots and log go on where known ones end, with what is known of those."""
    _continue_snapshots(known, metadata)
    _pass_on(known.__dict__, metadata.__dict__, ENCODED_LOG, CHECKED_LOG)
    return metadata


def snapshots_gained(before: TableMetadata, after: TableMetadata) -> tuple[Snapshot, ...] | None:
    """The snapshots that came behind those that were there; None where one of those is gone or is another."""
    count = len(before.snapshots)
    if after.snapshots is before.snapshots:
        return ()
    return after.snapshots[count:] if after.snapshots[:count] == before.snapshots else None


def _continue_snapshots(known: TableMetadata, after: TableMetadata) -> None:
    new = after.snapshots[len(known.snapshots) :]
    after.__dict__["snapshots_by_id"] = known.snapshots_by_id | {s.snapshot_id: s for s in new}
    _pass_on(known.__dict__, after.__dict__, ENCODED_SNAPSHOTS)
    if after.last_sequence_number >= known.last_sequence_number:
        _pass_on(known.__dict__, after.__dict__, CHECKED_SNAPSHOTS)


def _pass_on(known: dict[str, Any], to: dict[str, Any], *names: str) -> None:
    for name in names:
        if name in known:
            to[name] = known[name]


def check_format_version(version: int) -> None:
    """Refuse versions that bergline cannot write."""
    if version not in FORMAT_VERSIONS:
        raise UnsupportedError(f"expected a format version of 1 to {FORMAT_VERSIONS[-1]}, found {version}")


def strip_trailing_slash(location: str) -> str:
    """A location without trailing slashes, as Java stores it."""
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location


def positive_property(metadata: TableMetadata, key: str, default: int) -> int:
    """A non-negative integer table property, or its default."""
    return whole_number(metadata.properties, key, default)
