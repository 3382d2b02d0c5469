"""Partition evolution: what stays, what gets which id, what is refused."""

from collections.abc import Sequence

import pytest

from bergline.errors import AlreadyExistsError, BerglineError, InvalidInputError, NotFoundError
from bergline.format.evolution.partition_evolution import AddField, RemoveField, RenameField, SpecChange, evolve_spec
from bergline.format.partition.spec import PartitionField, PartitionSpec, parse_partition_by
from bergline.format.partition.transforms import IDENTITY, VOID, Bucket, TimeTransform, UnknownTransform
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, TIMESTAMP, ListType, NestedField

SCHEMA = Schema(
    (
        NestedField(1, "id", True, LONG),
        NestedField(2, "region", False, STRING),
        NestedField(3, "ts", False, TIMESTAMP),
        NestedField(4, "tags", False, ListType(5, STRING, False)),
    )
)
START = parse_partition_by(["region", "day(ts)"], SCHEMA)


def evolve(
    *changes: SpecChange,
    version: int = 2,
    spec: PartitionSpec = START,
    known: Sequence[PartitionSpec] = (START,),
    last: int = 1001,
) -> tuple[PartitionSpec, int]:
    return evolve_spec(spec, changes, schema=SCHEMA, format_version=version, known=known, last_partition_id=last)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_added_field_comes_last_with_a_new_id(version: int) -> None:
    spec, last = evolve(AddField("bucket(16, id)"), version=version)
    assert spec == PartitionSpec(1, (*START.fields, PartitionField(1, 1002, "id_bucket_16", Bucket(16))))
    assert last == 1002


def test_added_field_may_have_a_name() -> None:
    spec, _ = evolve(AddField("bucket(16, id)", "shard"))
    assert spec.fields[-1].name == "shard"


def test_removed_field_leaves_in_v2() -> None:
    assert evolve(RemoveField("region")) == (PartitionSpec(1, START.fields[1:]), 1001)
    assert evolve(RemoveField("days(ts)")) == (PartitionSpec(1, START.fields[:1]), 1001)


def test_removed_field_is_void_in_v1() -> None:
    spec, _ = evolve(RemoveField("region"), version=1)
    assert spec.fields == (PartitionField(2, 1000, "region", VOID), START.fields[1])


def test_field_that_comes_back_has_its_old_id_and_name() -> None:
    without, _ = evolve(RenameField("ts_day", "day"), RemoveField("region"))
    gone, _ = evolve(RemoveField("day"), spec=without, known=(START, without))
    back, last = evolve(AddField("day(ts)"), spec=gone, known=(START, without, gone))
    assert back.fields == (PartitionField(3, 1001, "day", TimeTransform("day")),)
    assert last == 1001


def test_equal_spec_keeps_its_id() -> None:
    without, _ = evolve(RemoveField("ts_day"))
    assert evolve(AddField("day(ts)", "ts_day"), spec=without, known=(START, without)) == (START, 1001)


def test_field_is_replaced_in_one_step() -> None:
    spec, _ = evolve(RemoveField("ts_day"), AddField("hour(ts)"))
    assert [f.name for f in spec.fields] == ["region", "ts_hour"]
    assert spec.fields[1].field_id == 1002


def test_name_of_a_removed_field_is_free() -> None:
    in_v2, _ = evolve(RemoveField("ts_day"), AddField("hour(ts)", "ts_day"))
    assert [f.name for f in in_v2.fields] == ["region", "ts_day"]
    in_v1, _ = evolve(RemoveField("ts_day"), AddField("hour(ts)", "ts_day"), version=1)
    assert [(f.name, str(f.transform)) for f in in_v1.fields] == [
        ("region", "identity"),
        ("ts_day_1001", "void"),
        ("ts_day", "hour"),
    ]


def test_name_of_a_field_that_was_removed_before_is_free() -> None:
    void = PartitionSpec(1, (PartitionField(2, 1000, "region", VOID), START.fields[1]))
    added, _ = evolve(AddField("region"), version=1, spec=void, known=(START, void))
    assert [f.name for f in added.fields] == ["region_1000", "ts_day", "region"]


def test_renamed_field_takes_the_name_of_one_that_was_removed_before() -> None:
    void = PartitionSpec(1, (PartitionField(1, 1000, "shard", VOID), START.fields[1]))
    renamed, _ = evolve(RenameField("ts_day", "shard"), version=1, spec=void, known=(START, void))
    assert [f.name for f in renamed.fields] == ["shard_1000", "shard"]


def test_removed_and_added_field_stays_as_it_was() -> None:
    assert evolve(RemoveField("region"), AddField("region")) == (START, 1001)
    renamed, _ = evolve(RemoveField("region"), AddField("region", "r"))
    assert renamed.fields[0] == PartitionField(2, 1000, "r", IDENTITY)


def test_finer_time_may_be_added_to_coarser() -> None:
    spec, _ = evolve(AddField("hour(ts)"))
    assert [f.name for f in spec.fields] == ["region", "ts_day", "ts_hour"]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ([AddField("region")], AlreadyExistsError, "partition field `region` exists"),
        ([AddField("day(ts)", "other")], AlreadyExistsError, "exists already"),
        ([AddField("bucket(4, id)"), AddField("bucket(4, id)")], AlreadyExistsError, "exists already"),
        ([AddField("bucket(4, id)", "ts_day")], AlreadyExistsError, "expected another name"),
        ([AddField("bucket(4, id)", "b"), AddField("bucket(8, id)", "b")], AlreadyExistsError, "`b` exists"),
        ([AddField("month(ts)"), AddField("hour(ts)")], InvalidInputError, "one unit of time"),
        ([AddField("bucket(4, id)", "ts")], InvalidInputError, "found the column `ts`"),
        ([AddField("bucket(4, id)", "")], InvalidInputError, "expected a name"),
        ([AddField("tags.element")], InvalidInputError, "outside lists and maps"),
        ([AddField("hour(region)")], InvalidInputError, "found `string`"),
        ([AddField("nope")], NotFoundError, "no column `nope`"),
        ([RemoveField("id")], NotFoundError, "no partition field `id`"),
        ([AddField("id"), RemoveField("id")], InvalidInputError, "only just added"),
        ([AddField("id"), RenameField("id", "key")], InvalidInputError, "cannot rename partition field `id`"),
        ([RenameField("region", "r"), RemoveField("region")], InvalidInputError, "both rename and remove"),
        ([RemoveField("region"), RenameField("region", "r")], InvalidInputError, "both remove and rename"),
        ([RenameField("nope", "r")], NotFoundError, "no partition field `nope`"),
        ([RenameField("region", "ts_day")], InvalidInputError, "found `ts_day`"),
    ],
)
def test_what_cannot_be_is_refused(changes: list[SpecChange], error: type[BerglineError], message: str) -> None:
    with pytest.raises(error, match=message):
        evolve(*changes)


def test_spec_of_an_unknown_transform_does_not_change() -> None:
    unknown = PartitionSpec(0, (PartitionField(1, 1000, "z", UnknownTransform("zorder")),))
    with pytest.raises(InvalidInputError, match="found `zorder` in `z`"):
        evolve(RemoveField("z"), spec=unknown, known=(unknown,))
