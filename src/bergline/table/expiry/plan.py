"""What expiry would do and why, as a value: printed as text, or as Arrow rows."""

from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa

from bergline.arguments import counted
from bergline.format.metadata.snapshot_log import readable_ms
from bergline.sizes import render_size
from bergline.table.expiry.reachable import FileKind, StoredFile
from bergline.table.expiry.retention import ExpiryDecision, RefDecision, SnapshotDecision

_SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        ("name", pa.string()),
        ("snapshot_id", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("kept", pa.bool_(), nullable=False),
        ("reason", pa.string()),
        ("files", pa.int64()),
        ("bytes", pa.int64()),
    ]
)


class Amount(msgspec.Struct, frozen=True):
    """A number of files and their total size."""

    files: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        return f"{counted(self.files, 'file')} of {render_size(self.bytes)}"


class ExpiryPlan(msgspec.Struct, frozen=True):
    """The fate of every ref and snapshot, by which rule, and which files would be deleted."""

    decision: ExpiryDecision
    files: tuple[StoredFile, ...] = ()
    """What would be deleted, with sizes."""
    held: dict[str, Amount] = {}
    """For each ref that stays, the files that it alone holds, which would be deleted sooner or later if it were
    dropped.

    Empty if files are not examined.
    """
    removed_specs: tuple[int, ...] = ()
    removed_schemas: tuple[int, ...] = ()

    @property
    def removed_snapshots(self) -> tuple[int, ...]:
        """The snapshots that would be removed."""
        return self.decision.removed_snapshots

    @property
    def removed_refs(self) -> tuple[str, ...]:
        """The refs that would be removed."""
        return self.decision.removed_refs

    @property
    def deleted(self) -> Amount:
        """What would be deleted in total."""
        return total(self.files)

    @property
    def deleted_by_kind(self) -> dict[FileKind, Amount]:
        """What would be deleted, by kind."""
        by_kind = {kind: tuple(f for f in self.files if f.kind is kind) for kind in FileKind}
        return {kind: total(files) for kind, files in by_kind.items() if files}

    def __str__(self) -> str:
        """For people: every ref and snapshot with the rule that keeps or removes it."""
        decision = self.decision
        refs, snapshots = counted(len(decision.refs), "ref"), counted(len(decision.snapshots), "snapshot")
        removed = f"{len(self.removed_refs)} of {refs} and {len(self.removed_snapshots)} of {snapshots}"
        lines = [
            f"{removed} would be removed; {self.deleted} would be deleted",
            *_block("refs", (self._ref_text(d) for d in decision.refs)),
            *_block("snapshots", map(_snapshot_text, reversed(decision.snapshots))),
            *_block("files to delete", (f"{kind}: {amount}" for kind, amount in self.deleted_by_kind.items())),
            *_block("partition specs to remove", map(str, self.removed_specs)),
            *_block("schemas to remove", map(str, self.removed_schemas)),
        ]
        return "\n".join(lines)

    def to_arrow(self) -> pa.Table:
        """A row for each ref, snapshot, kind of file, partition spec and schema.

        `files` and `bytes` of a ref are what it alone holds.
        """
        rows = [dict(zip(_SCHEMA.names, row, strict=True)) for row in self._rows()]
        return pa.Table.from_pylist(rows, _SCHEMA)

    def _rows(self) -> Iterator[tuple[object, ...]]:
        at = {d.snapshot.snapshot_id: d.snapshot.timestamp_ms * 1000 for d in self.decision.snapshots}
        for ref in self.decision.refs:
            held, target = self.held.get(ref.name), ref.ref.snapshot_id
            amount = (held.files, held.bytes) if held else (None, None)
            yield ref.ref.snapshot_ref_type.value, ref.name, target, at[target], ref.kept, str(ref.reason), *amount
        for one in self.decision.snapshots:
            snapshot_id = one.snapshot.snapshot_id
            yield "snapshot", None, snapshot_id, at[snapshot_id], one.kept, _reasons(one), None, None
        for kind, deleted in self.deleted_by_kind.items():
            yield "files", kind.value, None, None, False, None, deleted.files, deleted.bytes
        for what, ids in (("partition spec", self.removed_specs), ("schema", self.removed_schemas)):
            for unused in ids:
                yield what, str(unused), None, None, False, "nothing uses it", None, None

    def _ref_text(self, decision: RefDecision) -> str:
        held = self.held.get(decision.name)
        alone = f"; alone holds {held}" if held else ""
        kind = decision.ref.snapshot_ref_type
        return f"{kind} `{decision.name}`  {_verb(decision.kept)}: {decision.reason}{alone}"


def total(files: Iterable[StoredFile]) -> Amount:
    """Some files together; a size that is not known counts as none."""
    counted = tuple(files)
    return Amount(len(counted), sum(f.size or 0 for f in counted))


def _snapshot_text(decision: SnapshotDecision) -> str:
    snapshot = decision.snapshot
    when = readable_ms(snapshot.timestamp_ms)
    return f"{snapshot.snapshot_id}  {when}  {_verb(decision.kept)}: {_reasons(decision)}"


def _reasons(decision: SnapshotDecision) -> str:
    return "; ".join(map(str, decision.reasons))


def _verb(kept: bool) -> str:
    return "kept" if kept else "removed"


def _block(title: str, lines: Iterable[str]) -> list[str]:
    """Lines below a title; nothing if there are no lines."""
    shown = [f"  {line}" for line in lines]
    return ["", title, *shown] if shown else []
