"""Invariants of table metadata, whoever wrote it: those that Java checks, and that `main` is a branch."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise

from bergline.errors import BerglineError, FormatError, InvalidInputError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import CHECKED_LOG, CHECKED_SNAPSHOTS, FORMAT_VERSIONS, TableMetadata
from bergline.format.partition.compatibility import check_order_fits, check_partition_names, check_spec_fits

CLOCK_TOLERANCE_MS = 60_000
_CHECKED = "_checked"


def check_invariants(metadata: TableMetadata, base: TableMetadata | None = None) -> TableMetadata:
    """Refuse inconsistent metadata; what it has in common with a checked base is not checked again."""
    # immutable: a value that was read or built by `apply_updates` is not checked again before it is written
    known = metadata.__dict__
    if _CHECKED not in known:
        same_layout = base is not None and _CHECKED in base.__dict__ and _layout(metadata) == _layout(base)
        for check in _INVARIANTS:
            if check is not _check_layout or not same_layout:
                check(metadata)
        known[_CHECKED] = True
        known[CHECKED_SNAPSHOTS] = len(metadata.snapshots)
        known[CHECKED_LOG] = len(metadata.snapshot_log)
    return metadata


def broken_invariants(metadata: TableMetadata) -> list[FormatError]:
    """The inconsistencies of unchecked metadata: the first one of each kind."""
    found = []
    for check in _INVARIANTS:
        try:
            check(metadata)
        except FormatError as error:
            found.append(error)
        except (BerglineError, LookupError, StopIteration) as error:
            # it depends on something that another violated invariant leaves undefined
            found.append(FormatError(f"expected consistent metadata, found {error!r}"))
    return found


def _check_identity(metadata: TableMetadata) -> None:
    version = metadata.format_version
    if version not in FORMAT_VERSIONS:
        raise FormatError(f"expected a format version of 1 to {FORMAT_VERSIONS[-1]}, found {version}")
    if version > 1 and metadata.table_uuid is None:
        raise FormatError(f"expected a table-uuid in format version {version}, found none")
    if version == 1 and metadata.last_sequence_number != 0:
        raise FormatError(f"expected last-sequence-number 0 in format version 1, found {metadata.last_sequence_number}")
    if not metadata.location:
        raise FormatError("expected a location, found an empty text")
    _check_unique("key-id", [k.key_id for k in metadata.encryption_keys])


def _check_layout(metadata: TableMetadata) -> None:
    schema_ids = [s.schema_id for s in metadata.schemas]
    spec_ids = [s.spec_id for s in metadata.partition_specs]
    order_ids = [s.order_id for s in metadata.sort_orders]
    _check_unique("schema-id", schema_ids)
    _check_unique("spec-id", spec_ids)
    _check_unique("order-id", order_ids)
    _check_known("current-schema-id", metadata.current_schema_id, schema_ids)
    _check_known("default-spec-id", metadata.default_spec_id, spec_ids)
    _check_known("default-sort-order-id", metadata.default_sort_order_id, order_ids)
    for order in metadata.sort_orders:
        if bool(order.fields) != bool(order.order_id):
            raise FormatError(
                "expected order-id 0 for the unsorted order and for no other, "
                f"found {len(order.fields)} fields in order {order.order_id}"
            )
    try:
        for spec in metadata.partition_specs:
            check_partition_names(spec, metadata.schema)
        check_spec_fits(metadata.spec, metadata.schema)
        check_order_fits(metadata.sort_order, metadata.schema)
    except InvalidInputError as error:
        raise FormatError(f"{error} in the current schema") from error


def _layout(metadata: TableMetadata) -> tuple[object, ...]:
    """Everything that `_check_layout` depends on."""
    return (
        metadata.current_schema_id,
        metadata.schemas,
        metadata.default_spec_id,
        metadata.partition_specs,
        metadata.default_sort_order_id,
        metadata.sort_orders,
    )


def _check_snapshots(metadata: TableMetadata) -> None:
    snapshots = metadata.snapshots
    if len(metadata.snapshots_by_id) != len(snapshots):
        _check_unique("snapshot-id", [s.snapshot_id for s in snapshots])
    last = metadata.last_sequence_number
    unchecked = snapshots[metadata.__dict__.get(CHECKED_SNAPSHOTS, 0) :]
    doubtful = [
        s for s in unchecked if s.sequence_number > last or s.manifest_list is None or s.first_row_id is not None
    ]
    for snapshot in doubtful:
        _check_snapshot(snapshot, last)


def _check_snapshot(snapshot: Snapshot, last_sequence_number: int) -> None:
    if snapshot.sequence_number > last_sequence_number:
        raise FormatError(
            f"expected sequence numbers up to {last_sequence_number}, "
            f"found {snapshot.sequence_number} for snapshot {snapshot.snapshot_id}"
        )
    if snapshot.manifest_list is None and snapshot.manifests is None:
        raise FormatError(f"expected a manifest-list, found none for snapshot {snapshot.snapshot_id}")
    if snapshot.first_row_id is None:
        return
    if snapshot.first_row_id < 0:
        raise FormatError(
            f"expected a first-row-id of 0 or more, found {snapshot.first_row_id} for snapshot {snapshot.snapshot_id}"
        )
    if snapshot.added_rows is None or snapshot.added_rows < 0:
        raise FormatError(
            f"expected added-rows of 0 or more, found {snapshot.added_rows} for snapshot {snapshot.snapshot_id}"
        )


def _check_refs(metadata: TableMetadata) -> None:
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in metadata.snapshots_by_id:
            raise FormatError(f"expected a known snapshot for ref `{name}`, found {ref.snapshot_id}")
    main = metadata.refs.get(MAIN)
    if (main.snapshot_id if main else None) != metadata.current_snapshot_id:
        raise FormatError(
            f"expected `main` to be the current snapshot {metadata.current_snapshot_id}, "
            f"found {main.snapshot_id if main else None}"
        )
    if main is not None and not main.is_branch:
        raise FormatError("expected `main` to be a branch, found a tag")


def _check_logs(metadata: TableMetadata) -> None:
    checked = metadata.__dict__.get(CHECKED_LOG, 0)
    entries = metadata.snapshot_log[max(0, checked - 1) :]
    _check_times("snapshot-log", [e.timestamp_ms for e in entries], metadata.last_updated_ms)
    _check_times("metadata-log", [e.timestamp_ms for e in metadata.metadata_log], metadata.last_updated_ms)


def _check_unique(what: str, ids: Sequence[int | str | None]) -> None:
    if len(set(ids)) != len(ids):
        twice = next(i for i, count in Counter(ids).items() if count > 1)
        raise FormatError(f"expected each {what} once, found {twice} twice")


def _check_known(what: str, value: int, known: Collection[int | None]) -> None:
    if value not in known:
        raise FormatError(f"expected {what} to be one of {list(known)}, found {value}")


def _check_times(log: str, times: Iterable[int], last_updated_ms: int) -> None:
    in_order = [*times, last_updated_ms]
    if in_order == sorted(in_order):
        return
    for earlier, later in pairwise(in_order):
        if later < earlier - CLOCK_TOLERANCE_MS:
            raise FormatError(f"expected times in order, found {earlier} before {later} in the {log}")


_INVARIANTS: tuple[Callable[[TableMetadata], None], ...] = (
    _check_identity,
    _check_layout,
    _check_snapshots,
    _check_refs,
    _check_logs,
)
