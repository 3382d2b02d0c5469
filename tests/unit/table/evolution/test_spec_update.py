"""Partition specs change in one commit, and merge with what others change."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, ConflictError, InvalidInputError, NotFoundError
from bergline.table.evolution.spec_update import SpecUpdate
from support.fixtures.competing_writers import overtaken

SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string()), ("ts", pa.timestamp("us"))])


@pytest.fixture
def lake() -> Iterator[Lake]:
    with bergline.connect("memory:") as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table("db.t", SCHEMA, partition_by=["region"])


def fields(table: Table) -> list[tuple[int, str, str]]:
    return [(f.field_id, f.name, str(f.transform)) for f in table.spec.fields]


def rows(*ids: int, region: str = "eu") -> pa.Table:
    columns = [pa.array(ids, pa.int64()), pa.array([region] * len(ids)), pa.array([0] * len(ids), pa.timestamp("us"))]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def test_block_is_one_commit(table: Table) -> None:
    with table.update_spec() as spec:
        spec.add_field("day(ts)").add_field("bucket(16, id)", name="shard").remove_field("region")
        assert [f.name for f in spec.spec.fields] == ["ts_day", "shard"]
    assert fields(table) == [(1001, "ts_day", "day"), (1002, "shard", "bucket[16]")]
    assert table.metadata.default_spec_id == 1
    with table.update_spec() as spec:
        spec.rename_field("shard", "id_shard").remove_field("day(ts)")
    assert fields(table) == [(1002, "id_shard", "bucket[16]")]
    assert len(table.metadata.metadata_log) == 2


def test_fields_and_specs_that_come_back_have_their_old_ids(table: Table) -> None:
    with table.update_spec() as spec:
        spec.remove_field("region")
    with table.update_spec() as spec:
        spec.add_field("region")
    assert table.metadata.default_spec_id == 0
    assert fields(table) == [(1000, "region", "identity")]
    assert len(table.metadata.partition_specs) == 2


def test_files_of_all_specs_read_together(table: Table) -> None:
    table.append(rows(1, 2))
    with table.update_spec() as spec:
        spec.remove_field("region").add_field("bucket(2, id)")
    table.append(rows(3, region="us"))
    with table.update_schema() as schema:
        schema.drop_column("region")
    table.append(pa.table({"id": [4]}))
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 2, 3, 4]
    assert table.scan("id = 3").to_arrow().num_rows == 1
    assert {f.file.spec_id for f in table.scan().plan().files} == {0, 1}


def test_in_v1_removed_fields_stay_as_void(lake: Lake) -> None:
    table = lake.create_table("db.v1", SCHEMA, partition_by=["region"], properties={"format-version": "1"})
    table.append(rows(1))
    with table.update_spec() as spec:
        spec.remove_field("region").add_field("day(ts)")
    table.append(rows(2))
    assert fields(table) == [(1000, "region", "void"), (1001, "ts_day", "day")]
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 2]


def test_what_is_wrong_is_said_where_it_is_asked_for(table: Table) -> None:
    with table.update_spec() as spec:
        with pytest.raises(AlreadyExistsError, match="`region` exists already"):
            spec.add_field("region")
        with pytest.raises(NotFoundError, match="no column `nope`"):
            spec.add_field("day(nope)")
        with pytest.raises(NotFoundError, match="no partition field `id`"):
            spec.remove_field("id")
        with pytest.raises(InvalidInputError, match="expected a term"):
            spec.add_field("day(ts")
        with pytest.raises(InvalidInputError, match="found the column `id`"):
            spec.add_field("day(ts)", name="id")
        with pytest.raises(InvalidInputError, match="text for a partition term"):
            spec.add_field(None)  # type: ignore[arg-type]
    assert len(table.metadata.partition_specs) == 1
    with pytest.raises(InvalidInputError, match="inside a `with` block"):
        table.update_spec().add_field("day(ts)")


Wish = Callable[[SpecUpdate], object]


def change(table: Table, wanted: Wish) -> Callable[[], None]:
    def act() -> None:
        with table.refresh().update_spec() as spec:
            wanted(spec)

    return act


def test_fields_that_others_add_meanwhile_stay(lake: Lake, table: Table) -> None:
    def rename_column() -> None:
        with table.refresh().update_schema() as schema:
            schema.rename_column("region", "area").add_column("x", "int")

    late = overtaken(lake, change(table, lambda s: s.add_field("day(ts)")), rename_column).load_table("db.t")
    with late.update_spec() as spec:
        spec.add_field("bucket(4, id)").remove_field("region")
    assert fields(late) == [(1001, "ts_day", "day"), (1002, "id_bucket_4", "bucket[4]")]
    assert "x" in late.schema.names


@pytest.mark.parametrize(
    ("theirs", "mine", "message"),
    [
        (lambda s: s.add_field("day(ts)"), lambda s: s.add_field("day(ts)"), "`day\\(ts\\)` exists already"),
        (lambda s: s.add_field("day(ts)", name="x"), lambda s: s.add_field("bucket(4, id)", name="x"), "`x` exists"),
        (lambda s: s.remove_field("region"), lambda s: s.remove_field("region"), "removed or renamed"),
        (
            lambda s: s.rename_field("region", "r"),
            lambda s: s.remove_field("region"),
            "`region` was removed or renamed",
        ),
        (
            lambda s: s.remove_field("region"),
            lambda s: s.rename_field("region", "r"),
            "`region` was removed or renamed",
        ),
        (
            lambda s: s.remove_field("region").add_field("truncate(2, region)", name="region_"),
            lambda s: s.rename_field("region", "region_"),
            "`region` was removed",
        ),
    ],
)
def test_what_conflicts_in_meaning_is_a_conflict(
    lake: Lake, table: Table, theirs: Wish, mine: Wish, message: str
) -> None:
    late = overtaken(lake, change(table, theirs)).load_table("db.t")
    with pytest.raises(ConflictError, match=message) as caught, late.update_spec() as spec:
        mine(spec)
    assert "its partition spec changed first, at 20" in str(caught.value)
    assert late.refresh().spec == table.refresh().spec


def test_field_that_is_another_one_now_is_a_conflict(lake: Lake, table: Table) -> None:
    def replace() -> None:
        change(table, lambda s: s.remove_field("region"))()
        with table.update_schema() as schema:
            schema.drop_column("region").add_column("region", "string")
        change(table, lambda s: s.add_field("region", name="r").add_field("bucket(2, region)"))()

    late = overtaken(lake, replace).load_table("db.t")
    with pytest.raises(ConflictError, match="column `region` was dropped"), late.update_spec() as spec:
        spec.add_field("truncate(2, region)")
    other = lake.create_table("db.u", SCHEMA, partition_by=["region"])

    def other_transform() -> None:
        change(other, lambda s: s.remove_field("region"))()
        with other.update_schema() as schema:
            schema.rename_column("region", "area")
        change(other, lambda s: s.add_field("bucket(2, area)", name="region"))()

    late = overtaken(lake, other_transform).load_table("db.u")
    with (
        pytest.raises(ConflictError, match="partition field `region` is a different one now"),
        late.update_spec() as spec,
    ):
        spec.remove_field("region")
