import pytest

from bergline import Table
from bergline.console.actions.review import Confirmed, fingerprint
from bergline.errors import ConflictError
from bergline.format.metadata.refs import SnapshotRefType
from bergline.table.commits.operation import MetadataOperation
from bergline.table.references.ref_changes import drop_ref


def test_operation_is_committed_only_on_a_table_as_it_was_reviewed(story: Table) -> None:
    operation = MetadataOperation(lambda base: drop_ref(base, "v1", SnapshotRefType.TAG))
    with pytest.raises(ConflictError, match="changed since this was reviewed: nothing was done"):
        story.commit(Confirmed(operation, lambda base: len(base.snapshots), 77))
    assert "v1" in story.refresh().refs
    story.commit(Confirmed(operation, lambda base: len(base.snapshots), len(story.metadata.snapshots)))
    assert "v1" not in story.refresh().refs


def test_fingerprint_tells_states_apart() -> None:
    assert fingerprint("a", [1, None]) == fingerprint("a", [1, None])
    assert len({fingerprint("a", "b"), fingerprint("ab"), fingerprint("a", ["b"]), fingerprint("a", None)}) == 4
