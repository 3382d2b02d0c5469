"""Changes that follow each other on one table as one change."""

from bergline.format.metadata.refs import SnapshotRefType
from bergline.format.metadata.requirements import (
    AssertDefaultSpecId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUuid,
)
from bergline.format.metadata.updates import (
    AddPartitionSpec,
    RemoveSnapshotRef,
    SetDefaultSpec,
    SetProperties,
    SetSnapshotRef,
)
from bergline.format.partition.spec import UNPARTITIONED
from bergline.table.commits.combine import combine_changes
from bergline.table.commits.operation import Change

UUID = AssertTableUuid("u")


def moved(name: str, snapshot_id: int) -> SetSnapshotRef:
    return SetSnapshotRef(name, snapshot_id, SnapshotRefType.BRANCH)


def test_the_first_requirement_about_a_ref_is_the_one_about_the_base() -> None:
    joined = combine_changes(
        [
            Change((moved("main", 2),), (UUID, AssertRefSnapshotId("main", 1))),
            Change((moved("main", 3),), (UUID, AssertRefSnapshotId("main", 2))),
            Change((moved("dev", 3),), (UUID, AssertRefSnapshotId("dev", None))),
        ]
    )
    assert joined.updates == (moved("main", 2), moved("main", 3), moved("dev", 3))
    assert joined.requirements == (UUID, AssertRefSnapshotId("main", 1), AssertRefSnapshotId("dev", None))


def test_a_requirement_about_what_an_earlier_change_made_is_dropped() -> None:
    joined = combine_changes(
        [
            Change((RemoveSnapshotRef("main"),), (UUID,)),
            Change((moved("main", 3),), (UUID, AssertRefSnapshotId("main", None))),
        ]
    )
    assert joined.requirements == (UUID,)


def test_a_requirement_about_something_else_stays() -> None:
    spec = AddPartitionSpec(UNPARTITIONED)
    joined = combine_changes(
        [
            Change((spec,), (AssertLastAssignedPartitionId(999),)),
            Change((spec, SetDefaultSpec(-1)), (AssertLastAssignedPartitionId(1000), AssertDefaultSpecId(0))),
        ]
    )
    assert joined.requirements == (AssertLastAssignedPartitionId(999), AssertDefaultSpecId(0))


def test_changes_that_change_nothing_are_none() -> None:
    assert combine_changes([Change(), Change()]) == Change()
    assert combine_changes([Change(), Change((SetProperties({"a": "b"}),))]).updates == (SetProperties({"a": "b"}),)
