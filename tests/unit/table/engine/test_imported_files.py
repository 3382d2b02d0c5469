"""Files of others as data files: what cannot be read as the table's rows is refused by name."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake, Table
from bergline.datafiles.write.metrics_mode import MetricsModes
from bergline.errors import FormatError, InvalidInputError, NotFoundError
from bergline.format.manifest.manifest import DataFile
from bergline.table.engine.imported_files import ImportPlan, SourceFile, describe_files
from bergline.table.imports.add_files import name_mapping_of
from support.fixtures.rows import ORDERS


@pytest.fixture
def regions(lake: Lake) -> Table:
    return lake.create_table("db.regions", ORDERS, partition_by=["region"])


def describe(table: Table, path: Path) -> DataFile:
    plan = ImportPlan(table.schema, table.spec, name_mapping_of(table.metadata), MetricsModes())
    (found,) = describe_files(table.io, [SourceFile(str(path), ("eu",))], plan)
    return found


def test_file_is_described_with_its_partition(tmp_path: Path, regions: Table) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"more": [1, 2], "id": [5, 6]}), path)
    found = describe(regions, path)
    assert (found.record_count, found.file_size_in_bytes) == (2, path.stat().st_size)
    assert (found.partition, found.spec_id, found.file_format) == (("eu",), 0, "PARQUET")
    assert found.value_counts == {1: 2}


def test_file_with_the_tables_own_ids_is_taken(tmp_path: Path, regions: Table) -> None:
    path = tmp_path / "a.parquet"
    with_id = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table({"id": [1]}).cast(pa.schema([with_id])), path)
    assert describe(regions, path).value_counts == {1: 1}


def test_file_with_ids_of_other_columns_is_refused(tmp_path: Path, regions: Table) -> None:
    path = tmp_path / "a.parquet"
    with_id = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "2"})
    pq.write_table(pa.table({"id": [1]}).cast(pa.schema([with_id])), path)
    with pytest.raises(
        InvalidInputError, match=r"found id 2 for column `id`, which the table has for `amount`, in .*a\.p"
    ):
        describe(regions, path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.table({"id": ["1"]}), "expected `long` in column `id`, found `string`"),
        (pa.table({"amount": [1.0]}), r"expected the required column `id` \(id 1\), found none"),
        (pa.table({"id": [1], "amount": [[1.0]]}), "expected `double` in column `amount`, found `list"),
        (pa.table({"foo": [1], "bar": [2]}), "expected at least one column of the table, found `foo`, `bar`"),
        (pa.table({"id": [1], "Amount": [2.0]}), "expected column `amount`, found `Amount`"),
        (pa.table({"id": [1, None, None]}), "expected values in the required column `id`, found 2 nulls"),
    ],
)
def test_columns_that_are_not_the_tables_are_refused(
    tmp_path: Path, regions: Table, rows: pa.Table, message: str
) -> None:
    pq.write_table(rows, tmp_path / "a.parquet")
    with pytest.raises(InvalidInputError, match=rf"{message}.* in .*a\.parquet"):
        describe(regions, tmp_path / "a.parquet")


def test_other_files_are_refused(tmp_path: Path, regions: Table) -> None:
    (tmp_path / "a.parquet").write_text("id,amount")
    with pytest.raises(FormatError, match=r"expected a Parquet file, found .* in .*a\.parquet"):
        describe(regions, tmp_path / "a.parquet")
    with pytest.raises(NotFoundError):
        describe(regions, tmp_path / "nope.parquet")
