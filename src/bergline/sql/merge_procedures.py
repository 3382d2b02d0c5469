"""`CALL system.merge`, `rebase` and `diff`: what Iceberg itself has no procedures for."""

import pyarrow as pa

from bergline.table.references.merge import MergeResult
from bergline.table.table import Table


def merge(table: Table, *, branch: str, into: str, squash: bool = False) -> pa.Table:
    """Bring what a branch has into another."""
    return _result(into, table.refs.merge(branch, into=into, squash=squash))


def rebase(table: Table, *, branch: str, onto: str, squash: bool = False) -> pa.Table:
    """Move a branch on top of another ref."""
    return _result(branch, table.refs.rebase(branch, onto=onto, squash=squash))


def diff(table: Table, *, from_ref: str, to_ref: str) -> pa.Table:
    """Files and rows that one ref has more and less than another, by partition."""
    return table.refs.diff(from_ref, to_ref).to_arrow()


def _result(branch: str, result: MergeResult) -> pa.Table:
    row = {
        "branch_updated": branch,
        "previous_ref": result.previous,
        "updated_ref": result.head,
        "replayed_snapshots_count": len(result.replayed),
    }
    return pa.Table.from_pylist(
        [row],
        schema=pa.schema(
            [
                pa.field("branch_updated", pa.string(), nullable=False),
                pa.field("previous_ref", pa.int64()),
                pa.field("updated_ref", pa.int64(), nullable=False),
                pa.field("replayed_snapshots_count", pa.int32(), nullable=False),
            ]
        ),
    )
