"""Scans: reserved columns by name, rows in pieces."""

from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.identifiers import TableName
from bergline.datafiles.file.arrow_schema import schema_from_arrow
from bergline.errors import FormatError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.metadata.new_table import new_metadata
from bergline.format.partition.spec import UNPARTITIONED
from support.fixtures.damaged_tables import accept_metadata
from support.fixtures.rows import ORDERS, order_rows


def test_reserved_columns_are_given_by_name(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region", "bucket(4, id)"])
    table.append(order_rows(1))
    (row,) = (
        table.scan(columns=["id", "_file", "_pos", "_partition", "_spec_id", "_deleted", "_row_id"])
        .to_arrow()
        .to_pylist()
    )
    assert row.pop("_file").endswith(".parquet")
    assert row["_partition"].keys() == {"region", "id_bucket"}
    assert row["_partition"]["region"] == "eu"
    del row["_partition"]
    assert row == {"id": 1, "_pos": 0, "_spec_id": 0, "_deleted": False, "_row_id": None}


@pytest.mark.parametrize("name", ["_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id"])
def test_new_table_has_no_column_of_a_reserved_name(lake: Lake, name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"expected names that are not reserved, found the column `{name}`"):
        lake.create_table("db.t", pa.schema([(name, pa.string())]))


def test_own_column_hides_a_reserved_one(lake: Lake) -> None:
    metadata = new_metadata(
        schema=schema_from_arrow(pa.schema([("_pos", pa.string())])),
        spec=UNPARTITIONED,
        location=lake.catalog.default_location(TableName(("db",), "t")),
        properties={},
        table_uuid=str(uuid4()),
        now_ms=1,
    )
    lake.catalog.create_table(TableName(("db",), "t"), metadata)
    table = lake.load_table("db.t")
    table.append(pa.table({"_pos": ["x"]}))
    assert table.scan(columns=["_pos"]).to_arrow().to_pydict() == {"_pos": ["x"]}


def test_unknown_column_is_not_found(orders: Table) -> None:
    with pytest.raises(NotFoundError, match="no column `_position`"):
        orders.scan(columns=["_position"])
    with pytest.raises(InvalidInputError, match="found"):
        orders.scan(columns=["_pos", "_pos"])


def test_rows_come_in_pieces(orders: Table) -> None:
    orders.append(order_rows(1, 2)).append(order_rows(3))
    scan = orders.scan(row_filter="id > 1")
    assert sorted(i for batch in scan.to_batches() for i in batch.column("id").to_pylist()) == [2, 3]
    reader = scan.to_arrow_batch_reader()
    assert reader.schema.equals(scan.to_arrow().schema)
    assert reader.read_all().num_rows == 2


def test_empty_table_has_no_pieces_and_a_schema(orders: Table) -> None:
    assert list(orders.scan().to_batches()) == []
    assert orders.scan().to_arrow_batch_reader().read_all().num_rows == 0


@pytest.mark.parametrize("keyword", ["", "TIMESTAMP "])
def test_times_compare_to_the_last_digit(lake: Lake, keyword: str) -> None:
    schema = pa.schema([("ns", pa.timestamp("ns")), ("us", pa.timestamp("us"))])
    table = lake.create_table("db.digits", schema, properties={"format-version": "3"})
    table.append(pa.table({"ns": [0, 1, 1000], "us": [0, 1, 2]}, schema=schema))
    literal = f"{keyword}'1970-01-01 00:00:00.000000001'"

    def found(condition: str) -> list[int]:
        rows = table.scan(f"{condition} {literal}").to_arrow()
        return rows.column("us").cast(pa.int64()).to_pylist()

    assert [found(f"ns {op}") for op in ("=", "<", "<=", ">", "!=")] == [[1], [0], [0, 1], [2], [0, 2]]
    assert [found(f"us {op}") for op in ("=", "<", "<=", ">", "!=")] == [[], [0], [0], [1, 2], [0, 1, 2]]


def test_pieces_are_never_empty(lake: Lake) -> None:
    table = lake.create_table("db.pieces", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 3]})).append(pa.table({"id": [2]}))
    assert [b.num_rows for b in table.scan("id = 2").to_batches()] == [1]
    assert list(table.scan("id > 1 and id < 2").to_batches()) == []


@pytest.mark.parametrize(
    ("term", "named", "shown"),
    [
        ("bucket(2, id)", "bucket[2]", {"0", "1"}),
        ("truncate(1, s)", "truncate[1]", {"a", "b", "c"}),
        ("b", "identity", {"0061"}),
    ],
)
def test_partitions_by_an_unknown_transform_are_read_whatever_they_are(
    tmp_path: Path, lake: Lake, term: str, named: str, shown: set[str]
) -> None:
    columns = pa.schema([("id", pa.int64()), ("s", pa.string()), ("b", pa.binary())])
    table = lake.create_table("db.odd", columns, partition_by=[term])
    rows = [{"id": i, "s": s, "b": b"\x00a"} for i, s in enumerate("abc", 1)]
    table.append(pa.Table.from_pylist(rows, schema=columns))
    _edit_metadata(lake, table, named, "foo[2]")
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as other:
        odd = other.load_table("db.odd")
        assert sorted(odd.scan().to_arrow().to_pylist(), key=str) == rows
        assert odd.scan("id = 2").to_arrow()["id"].to_pylist() == [2]
        partitions = odd.scan(columns=["_partition"]).to_arrow()["_partition"].to_pylist()
        assert {text for p in partitions for text in p.values()} == shown
        with pytest.raises(InvalidInputError, match="expected a known transform to write with"):
            odd.append(pa.Table.from_pylist(rows, schema=columns))
        with pytest.raises(UnsupportedError, match="partitioned by the unknown `foo\\[2\\]`"):
            odd.overwrite_files([])


def test_partition_values_of_another_type_name_their_manifest(tmp_path: Path, lake: Lake) -> None:
    table = lake.create_table(
        "db.wrong", pa.schema([("id", pa.int64()), ("s", pa.string())]), partition_by=["truncate(1, id)"]
    )
    table.append(pa.table({"id": [1], "s": ["a"]}))
    _edit_metadata(lake, table, '"source-id":1', '"source-id":2')
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as other:
        wrong = other.load_table("db.wrong")
        for row_filter in (None, "id = 1"):
            with pytest.raises(FormatError, match=r"expected `string` in partition field 1000, .* in file:.*-m0\.avro"):
                wrong.scan(row_filter).to_arrow()


def _edit_metadata(lake: Lake, table: Table, old: str, new: str) -> None:
    file = Path(table.metadata_location.removeprefix("file://"))
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    accept_metadata(lake, table.metadata_location)
