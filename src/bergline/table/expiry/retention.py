"""Which snapshots and refs expiry removes. Pure: the same metadata, time and wishes give the same answer."""

from collections.abc import Collection

import msgspec

from bergline.errors import InvalidInputError, RefusedError
from bergline.format.metadata import TableMetadata, positive_property
from bergline.format.refs import MAIN, SnapshotRef

_MAX_AGE = "history.expire.max-snapshot-age-ms"
_MIN_KEEP = "history.expire.min-snapshots-to-keep"
_MAX_REF_AGE = "history.expire.max-ref-age-ms"
_FIVE_DAYS_MS = 432_000_000


class ExpiryWish(msgspec.Struct, frozen=True):
    """What the caller asks for; None means the table's own setting."""

    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids: frozenset[int] = frozenset()


class ExpiryPlan(msgspec.Struct, frozen=True):
    """What goes."""

    removed_refs: tuple[str, ...]
    removed_snapshots: tuple[int, ...]


def plan_expiry(metadata: TableMetadata, wish: ExpiryWish, now_ms: int) -> ExpiryPlan:
    """Keep what any live ref protects; of the rest, remove what is old enough or named."""
    gc_enabled = metadata.properties.get("gc.enabled", "true").lower()
    if gc_enabled != "true":  # a misspelt value too: nothing is deleted by mistake
        raise RefusedError(f"cannot expire snapshots: `gc.enabled` is {gc_enabled}, other tables may share the files")
    if wish.retain_last is not None and wish.retain_last < 1:
        raise InvalidInputError(f"expected retain_last of at least 1, found {wish.retain_last}")
    older_than_ms = wish.older_than_ms
    if older_than_ms is None:
        older_than_ms = now_ms - positive_property(metadata, _MAX_AGE, _FIVE_DAYS_MS)
    retain_last = wish.retain_last or positive_property(metadata, _MIN_KEEP, 1)
    live = {n: r for n, r in metadata.refs.items() if _is_live(metadata, n, r, now_ms)}
    _check_not_referenced(live, wish.snapshot_ids)
    kept: set[int] = {r.snapshot_id for r in live.values()}
    reachable: set[int] = set(kept)
    for ref in live.values():
        if ref.is_branch:
            kept |= _kept_by_branch(metadata, ref, older_than_ms, retain_last, now_ms)
            reachable |= {s.snapshot_id for s in metadata.ancestors(ref.snapshot_id)}
    kept |= {s.snapshot_id for s in metadata.snapshots if s.timestamp_ms >= older_than_ms} - reachable
    removed = (set(metadata.snapshots_by_id) - kept) | (wish.snapshot_ids & set(metadata.snapshots_by_id))
    return ExpiryPlan(
        removed_refs=tuple(sorted(set(metadata.refs) - set(live))),
        removed_snapshots=tuple(s.snapshot_id for s in metadata.snapshots if s.snapshot_id in removed),
    )


def _is_live(metadata: TableMetadata, name: str, ref: SnapshotRef, now_ms: int) -> bool:
    """`main` always; another ref while its snapshot is young enough."""
    if name == MAIN:
        return True
    most = ref.max_ref_age_ms or positive_property(metadata, _MAX_REF_AGE, 2**63 - 1)
    return now_ms - metadata.snapshots_by_id[ref.snapshot_id].timestamp_ms <= most


def _kept_by_branch(
    metadata: TableMetadata, ref: SnapshotRef, older_than_ms: int, retain_last: int, now_ms: int
) -> set[int]:
    """The newest snapshots of a branch: at least the minimum, and those that are young; its own settings come first."""
    cutoff = older_than_ms if ref.max_snapshot_age_ms is None else now_ms - ref.max_snapshot_age_ms
    least = retain_last if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
    kept: set[int] = set()
    for snapshot in metadata.ancestors(ref.snapshot_id):
        if len(kept) >= least and snapshot.timestamp_ms < cutoff:
            break
        kept.add(snapshot.snapshot_id)
    return kept


def _check_not_referenced(live: dict[str, SnapshotRef], snapshot_ids: Collection[int]) -> None:
    for snapshot_id in snapshot_ids:
        if names := sorted(n for n, r in live.items() if r.snapshot_id == snapshot_id):
            several = len(names) > 1
            listed = ", ".join(f"`{n}`" for n in names)
            raise RefusedError(
                f"cannot expire snapshot {snapshot_id}: {listed} still {'name' if several else 'names'} it",
                hints=["drop the refs first" if several else "drop the ref first"],
            )
