"""Files of others in a table: read like its own, with a name mapping, in one commit."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake, Table
from bergline.errors import BerglineError, ConflictError, InvalidInputError, NotFoundError
from bergline.table.engine.arrow_engine import ArrowRowEngine
from support.fixtures.competing_writers import overtaken
from support.fixtures.rows import ORDERS, ids, order_rows

PLAIN = pa.schema([("id", pa.int64()), ("amount", pa.float64())])


@pytest.fixture
def regions(lake: Lake) -> Table:
    return lake.create_table("db.regions", ORDERS, partition_by=["region"])


def write(path: Path, *numbers: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(order_rows(*numbers).select(["id", "amount"]).cast(PLAIN), path)
    return str(path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    home = tmp_path / "hive"
    write(home / "region=eu" / "a.parquet", 1, 2)
    write(home / "region=us" / "b.parquet", 3)
    write(home / "region=__HIVE_DEFAULT_PARTITION__" / "c.parquet", 4)
    return home


def test_files_become_rows_in_their_partitions_in_one_commit(regions: Table, source: Path) -> None:
    before = {path: path.read_bytes() for path in source.rglob("*.parquet")}
    found = regions.add_files(str(source))
    assert sorted(f.partition for f in found if f.partition[0]) == [("eu",), ("us",)]
    rows = regions.scan().to_arrow().to_pylist()
    assert {(r["id"], r["region"]) for r in rows} == {(1, "eu"), (2, "eu"), (3, "us"), (4, None)}
    assert ids(regions.scan("region IS NULL").to_arrow()) == [4]
    assert len(regions.scan("id = 3").plan().files) == 1
    mapping = json.loads(regions.properties["schema.name-mapping.default"])
    assert mapping[0] == {"field-id": 1, "names": ["id"]}
    assert len(regions.metadata.snapshots) == len(regions.metadata.metadata_log) == 1
    assert regions.current_snapshot
    assert regions.current_snapshot.summary["added-data-files"] == "3"
    assert {path: path.read_bytes() for path in source.rglob("*.parquet")} == before


def test_filter_branch_and_lists_of_files(regions: Table, source: Path) -> None:
    regions.add_files(str(source), partition_filter={"region": "us"})
    regions.add_files([str(source / "region=eu" / "a.parquet")], branch="dev", summary={"why": "try"})
    assert ids(regions.scan().to_arrow()) == [3]
    assert ids(regions.scan(ref="dev").to_arrow()) == [1, 2, 3]
    before = regions.metadata_location
    assert regions.add_files(str(source), partition_filter={"region": "nw"}) == []
    assert regions.add_files([]) == []
    assert regions.metadata_location == before


def test_files_with_given_partitions(regions: Table, tmp_path: Path) -> None:
    path = write(tmp_path / "anywhere.parquet", 7)
    regions.add_files({path: {"region": "eu"}})
    assert regions.scan("region = 'eu'").to_arrow().column("id").to_pylist() == [7]


def test_mapping_that_the_table_has_stays_and_counts(lake: Lake, tmp_path: Path) -> None:
    mapping = '[{"field-id": 1, "names": ["id", "number"]}, {"field-id": 2, "names": ["amount"]}]'
    table = lake.create_table("db.t", PLAIN, properties={"schema.name-mapping.default": mapping})
    pq.write_table(pa.table({"number": [5]}), tmp_path / "a.parquet")
    (found,) = table.add_files([str(tmp_path / "a.parquet")])
    assert (found.value_counts, ids(table.scan().to_arrow())) == ({1: 1}, [5])
    assert table.properties["schema.name-mapping.default"] == mapping


def test_files_that_are_there_already_are_refused(regions: Table, source: Path) -> None:
    regions.add_files(str(source))
    before = regions.metadata_location
    with pytest.raises(InvalidInputError, match="which is on branch `main` already and 2 more"):
        regions.add_files(str(source))
    assert regions.refresh().metadata_location == before


def test_bad_files_change_nothing(regions: Table, source: Path, orders: Table) -> None:
    before = regions.metadata_location
    (source / "region=us" / "d.parquet").write_text("no")
    with pytest.raises(BerglineError, match=r"d\.parquet"):
        regions.add_files(str(source))
    with pytest.raises(InvalidInputError, match=r"expected files partitioned as a spec of the table, \(\), found"):
        orders.add_files(str(source))
    with pytest.raises(InvalidInputError, match="expected a row engine"):
        regions.add_files(str(source), engine="spark")  # type: ignore[arg-type]
    with pytest.raises(NotFoundError, match="no files to import"):
        regions.add_files(str(source / "nope"))
    assert regions.refresh().metadata_location == before
    assert "schema.name-mapping.default" not in regions.properties


def test_append_of_others_is_kept(lake: Lake, regions: Table, source: Path) -> None:
    losing = overtaken(lake, lambda: lake.load_table("db.regions").append(order_rows(9))).load_table("db.regions")
    losing.add_files(str(source))
    assert ids(regions.refresh().scan().to_arrow()) == [1, 2, 3, 4, 9]


def test_another_name_mapping_meanwhile_is_a_conflict(lake: Lake, regions: Table, source: Path) -> None:
    other = '[{"field-id": 2, "names": ["id"]}]'

    def remap() -> None:
        lake.load_table("db.regions").set_properties({"schema.name-mapping.default": other})

    losing = overtaken(lake, remap).load_table("db.regions")
    with pytest.raises(ConflictError, match="expected the name mapping"):
        losing.add_files(str(source))
    assert regions.refresh().current_snapshot is None


class NotedEngine(ArrowRowEngine):
    parts = 0

    def compute(self, io, what, work, parts, location):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
        self.parts = len(parts)
        return super().compute(io, what, work, parts, location)


def test_many_footers_are_left_to_the_engine_and_few_are_not(orders: Table, tmp_path: Path) -> None:
    few, many = NotedEngine(), NotedEngine()
    orders.add_files([write(tmp_path / "one.parquet", 0)], engine=few)
    orders.add_files([write(tmp_path / f"{n}.parquet", n) for n in range(1, 131)], engine=many)
    assert (few.parts, many.parts) == (0, 65)
    assert ids(orders.scan().to_arrow()) == list(range(131))
