"""The consistency of metadata itself: refs, parents, logs, schemas, assigned ids, statistics."""

from collections.abc import Iterator

from bergline.format.metadata.refs import MAIN, SnapshotRef
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import (
    ROW_LINEAGE_VERSION,
    PartitionStatisticsFile,
    StatisticsFile,
    TableMetadata,
)
from bergline.reports.check.findings import Findings

_LONGEST_NAME = 255
_EARLIER = "register an earlier metadata file of the table, and repeat what was committed since"


def check_metadata(metadata: TableMetadata, place: str, findings: Findings) -> None:
    """Add what is wrong in the metadata alone; `place` is its file."""
    for name, ref in metadata.refs.items():
        _check_ref(name, ref, metadata, place, findings)
    for snapshot in metadata.snapshots:
        _check_snapshot(snapshot, metadata, place, findings)
    _check_parents(metadata, place, findings)
    _check_logs(metadata, place, findings)
    _check_counters(metadata, place, findings)
    _check_statistics(metadata, place, findings)


def _check_ref(name: str, ref: SnapshotRef, metadata: TableMetadata, place: str, findings: Findings) -> None:
    kind = str(ref.snapshot_ref_type)
    if ref.snapshot_id not in metadata.snapshots_by_id:
        mend = _EARLIER if name == MAIN else f"drop the {kind}, or set it to a snapshot that exists"
        message = f"{kind} `{name}` names snapshot {ref.snapshot_id}, which does not exist"
        findings.error("ref-without-snapshot", f"ref `{name}` in {place}", message, mend)
    if not 0 < len(name) <= _LONGEST_NAME:
        message = f"the name of a {kind} has {len(name)} characters, expected 1 to {_LONGEST_NAME}"
        findings.warning("ref-name", f"ref `{name[:_LONGEST_NAME]}` in {place}", message, f"rename the {kind}")


def _check_snapshot(snapshot: Snapshot, metadata: TableMetadata, place: str, findings: Findings) -> None:
    where = f"snapshot {snapshot.snapshot_id} in {place}"
    known = {schema.schema_id for schema in metadata.schemas}
    if snapshot.schema_id is not None and snapshot.schema_id not in known:
        message = f"expected a schema-id of {sorted(map(str, known))}, found {snapshot.schema_id}"
        findings.warning("schema-unknown", where, message, "read the snapshot with the current schema, or expire it")
    if snapshot.first_row_id is None:
        return
    end = snapshot.first_row_id + (snapshot.added_rows or 0)
    if metadata.format_version >= ROW_LINEAGE_VERSION and end > metadata.next_row_id:
        message = f"expected row ids below next-row-id {metadata.next_row_id}, found some up to {end}"
        findings.error("row-ids-beyond-next", where, message, f"{_EARLIER}: new rows would get ids that are taken")


def _check_parents(metadata: TableMetadata, place: str, findings: Findings) -> None:
    for snapshot in metadata.snapshots:
        parent = metadata.snapshots_by_id.get(snapshot.parent_snapshot_id or -1)
        if parent is None or metadata.format_version == 1:  # expired, or without sequence numbers
            continue
        if parent.sequence_number >= snapshot.sequence_number > 0:
            message = (
                f"expected a sequence number above {parent.sequence_number} of parent {parent.snapshot_id}, "
                f"found {snapshot.sequence_number}"
            )
            findings.error("sequence-number-order", f"snapshot {snapshot.snapshot_id} in {place}", message, _EARLIER)
    for number in _in_cycles(metadata):
        message = f"snapshot {number} is its own ancestor"
        findings.error("parents-in-a-cycle", f"snapshot {number} in {place}", message, _EARLIER)


def _in_cycles(metadata: TableMetadata) -> Iterator[int]:
    """One snapshot of each cycle of parents."""
    done: set[int] = set()
    for start in metadata.snapshots_by_id:
        path: dict[int, None] = {}
        at: int | None = start
        while at is not None and at in metadata.snapshots_by_id and at not in done and at not in path:
            path[at] = None
            at = metadata.snapshots_by_id[at].parent_snapshot_id
        if at is not None and at in path:
            yield at
        done.update(path)


def _check_logs(metadata: TableMetadata, place: str, findings: Findings) -> None:
    log = metadata.snapshot_log
    harmless = "none is needed: only time travel by timestamp to that time is refused"
    for entry in log:
        if entry.snapshot_id not in metadata.snapshots_by_id:
            message = f"the snapshot log names snapshot {entry.snapshot_id}, which does not exist"
            findings.warning("snapshot-log", f"the snapshot log in {place}", message, harmless)
    current = metadata.current_snapshot_id
    if log and current is not None and log[-1].snapshot_id != current:
        message = f"expected the snapshot log to end with the current snapshot {current}, found {log[-1].snapshot_id}"
        mend = "none is needed: the next commit to `main` corrects the log; until then time travel may be wrong"
        findings.warning("snapshot-log", f"the snapshot log in {place}", message, mend)


def _check_counters(metadata: TableMetadata, place: str, findings: Findings) -> None:
    fields = max((schema.highest_id for schema in metadata.schemas), default=0)
    if fields > metadata.last_column_id:
        message = f"expected last-column-id of at least {fields}, found {metadata.last_column_id}"
        mend = f"{_EARLIER}; add no column before: it would get an id that is taken"
        findings.error("last-column-id", place, message, mend)
    partitions = max((spec.highest_field_id for spec in metadata.partition_specs), default=0)
    if partitions > metadata.last_partition_id:
        message = f"expected last-partition-id of at least {partitions}, found {metadata.last_partition_id}"
        mend = f"{_EARLIER}; add no partition field before: it would get an id that is taken"
        findings.error("last-partition-id", place, message, mend)


def _check_statistics(metadata: TableMetadata, place: str, findings: Findings) -> None:
    statistics: list[StatisticsFile | PartitionStatisticsFile] = [*metadata.statistics, *metadata.partition_statistics]
    for one in statistics:
        if one.snapshot_id not in metadata.snapshots_by_id:
            message = f"statistics are recorded for snapshot {one.snapshot_id}, which does not exist"
            findings.warning("statistics-without-snapshot", place, message, "expire snapshots: that removes them")
