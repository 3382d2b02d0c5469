"""Which files a source has, and into which partitions they go."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError
from bergline.io.local import LocalFileIO
from bergline.table.imports.source_files import PartitionedFile, matching_spec, pick_files, source_files
from support.fixtures.rows import ORDERS


@pytest.fixture
def regions(lake: Lake) -> Table:
    columns = pa.schema([*ORDERS, ("day", pa.date32())])
    return lake.create_table("db.regions", columns, partition_by=["Region", "day"])


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def found(source: Any, table: Table) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return [(f.location.rpartition("/")[2], f.values) for f in source_files(LocalFileIO(), source, table.spec)]


def test_directories_name_partitions_and_hidden_files_are_left_out(tmp_path: Path, regions: Table) -> None:
    home = tmp_path / "so urce"
    touch(home / "region=e%3Au/day=2026-01-01/a", home / "region=us/day=2026-01-02/b", home / "_SUCCESS")
    touch(home / "region=us/day=2026-01-02/.b.crc", home / "_temporary/0/c")
    expected = [
        ("a", (("region", "e:u"), ("day", "2026-01-01"))),
        ("b", (("region", "us"), ("day", "2026-01-02"))),
    ]
    assert found(str(home), regions) == expected
    assert found(f"file://{home}/", regions) == expected
    assert found([f"{home}/region=us/day=2026-01-02/b"], regions) == expected[1:]
    assert found({"/x/b": {"region": "us", "day": "2026-01-02"}}, regions) == expected[1:]
    assert found(f"{home}/_SUCCESS", regions) == [("_SUCCESS", ())]


@pytest.mark.parametrize("below", ["2026/01/a", "region=us/more/a"])
def test_other_directories_are_refused(tmp_path: Path, regions: Table, below: str) -> None:
    touch(tmp_path / "s" / below)
    with pytest.raises(InvalidInputError, match="expected directories like `column=value`, found"):
        found(str(tmp_path / "s"), regions)
    with pytest.raises(InvalidInputError, match="expected directories like `column=value`, found"):
        found([str(tmp_path / "s" / below)], regions)


@pytest.mark.parametrize("source", [3, None, [3], {"/x": None}, {"/x": {"region": 3}}, {3: {}}])
def test_sources_that_make_no_sense_are_refused(regions: Table, source: Any) -> None:
    with pytest.raises(InvalidInputError):
        found(source, regions)


def test_source_without_files_is_not_found(tmp_path: Path, regions: Table) -> None:
    with pytest.raises(NotFoundError, match="no files to import in"):
        found(str(tmp_path / "nope"), regions)


def test_spec_with_the_same_columns_is_found_whatever_their_case(regions: Table) -> None:
    assert matching_spec(regions.metadata, ["region", "DAY"]).spec_id == 0
    with regions.update_spec() as spec:
        spec.remove_field("day")
    assert matching_spec(regions.metadata, ["region", "day"]).spec_id == 0
    assert matching_spec(regions.metadata, ["region"]).spec_id == 1


@pytest.mark.parametrize("names", [[], ["region"], ["day", "region"], ["region", "day", "id"]])
def test_other_columns_have_no_spec(regions: Table, names: list[str]) -> None:
    with pytest.raises(InvalidInputError, match=r"identity region, identity day.*found \("):
        matching_spec(regions.metadata, names)


def test_transforms_have_no_partitions_of_files(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["bucket(4, id)"])
    with pytest.raises(InvalidInputError, match=r"bucket\[4\] id_bucket"):
        matching_spec(table.metadata, ["id_bucket_4"])


def files(*regions: str) -> list[PartitionedFile]:
    return [PartitionedFile(f"/{r}", (("REGION", r), ("day", "1970-01-02"))) for r in regions]


def test_filter_picks_partitions_by_value(regions: Table) -> None:
    def picked(wanted: dict[str, str]) -> list[tuple[str, tuple[Any, ...]]]:
        all_files = files("eu", "us", "__HIVE_DEFAULT_PARTITION__")
        return [(f.location, f.partition) for f in pick_files(all_files, regions.metadata, regions.spec, wanted)]

    assert picked({}) == [("/eu", ("eu", 1)), ("/us", ("us", 1)), ("/__HIVE_DEFAULT_PARTITION__", (None, 1))]
    assert picked({"region": "us"}) == [("/us", ("us", 1))]
    assert picked({"DAY": "1970-01-02", "region": "eu"}) == [("/eu", ("eu", 1))]
    assert picked({"region": "__HIVE_DEFAULT_PARTITION__"}) == [("/__HIVE_DEFAULT_PARTITION__", (None, 1))]
    assert picked({"region": "nw"}) == []


def test_filter_on_other_columns_and_values_of_other_types_are_refused(regions: Table) -> None:
    metadata, spec = regions.metadata, regions.spec
    with pytest.raises(InvalidInputError, match="expected partition columns in the filter, region, day, found `id`"):
        pick_files(files("eu"), metadata, spec, {"id": "1"})
    with pytest.raises(InvalidInputError, match="expected a `date` for partition column `day`, found `x`"):
        pick_files(files("eu"), metadata, spec, {"day": "x"})
    with pytest.raises(InvalidInputError, match=r"expected the partition columns region, day, found \(none\) for /a"):
        pick_files([*files("eu"), PartitionedFile("/a")], metadata, spec, {})
