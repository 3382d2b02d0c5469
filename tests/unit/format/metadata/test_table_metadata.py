"""Table metadata as a value: lookups and invariants."""

from typing import Any

import msgspec
import pytest

from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata.refs import SnapshotRefType
from bergline.format.metadata.table_metadata import (
    TableMetadata,
    positive_property,
)

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


def changed(metadata: TableMetadata, **fields: Any) -> TableMetadata:
    return msgspec.structs.replace(metadata, **fields)


def test_heads_and_ancestors(metadata: TableMetadata) -> None:
    head = metadata.head("audit")
    assert head is not None
    assert [s.snapshot_id for s in metadata.ancestors(103)] == [103, 102, 101]
    assert (head.snapshot_id, metadata.head("nothing")) == (102, None)
    assert metadata.current_snapshot is metadata.snapshot(103)


@pytest.mark.parametrize(("ancestor", "of", "expected"), [(101, 103, True), (103, 103, True), (103, 101, False)])
def test_is_ancestor(metadata: TableMetadata, ancestor: int, of: int, expected: bool) -> None:
    assert metadata.is_ancestor(ancestor, of=of) is expected


def test_expired_parent_ends_the_history(metadata: TableMetadata) -> None:
    without = changed(metadata, snapshots=metadata.snapshots[2:])
    assert [s.snapshot_id for s in without.ancestors(103)] == [103]


def test_loop_of_parents_ends(metadata: TableMetadata) -> None:
    first = msgspec.structs.replace(metadata.snapshots[0], parent_snapshot_id=103)
    looped = changed(metadata, snapshots=(first, *metadata.snapshots[1:]))
    assert [s.snapshot_id for s in looped.ancestors(103)] == [103, 102, 101]


def test_unknown_names_are_not_found(metadata: TableMetadata) -> None:
    with pytest.raises(NotFoundError, match="snapshot with id 5"):
        metadata.snapshot(5)
    with pytest.raises(NotFoundError, match="schema with id 5"):
        metadata.schema_by_id(5)
    with pytest.raises(NotFoundError, match="`maim`") as caught:
        metadata.ref("maim")
    assert caught.value.near == ("main",)


@pytest.mark.parametrize(("text", "expected"), [("0", 0), (" 12 ", 12), (None, 7)])
def test_property_is_a_whole_number_or_its_default(metadata: TableMetadata, text: str | None, expected: int) -> None:
    properties = {} if text is None else {"p": text}
    assert positive_property(changed(metadata, properties=properties), "p", 7) == expected


@pytest.mark.parametrize("text", ["-1", "--5", "1.5", "", "many", "\u00b2", "1_000"])
def test_property_that_is_no_whole_number_is_refused(metadata: TableMetadata, text: str) -> None:
    with pytest.raises(InvalidInputError, match=f"for property `p`, found `{text}`"):
        positive_property(changed(metadata, properties={"p": text}), "p", 7)
