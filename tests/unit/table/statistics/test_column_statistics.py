"""Distinct values of columns: sketches in a Puffin file that the metadata names."""

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.deletes.puffin import blob_content, parse_puffin
from bergline.format.encoding.theta_sketch import parse_theta_sketch
from bergline.format.metadata.table_metadata import StatisticsFile
from support.fixtures.rows import order_rows


def distinct(table: Table, file: StatisticsFile | None) -> dict[str, int]:
    """The counts that the metadata has, which must be those of the blobs."""
    assert file is not None
    data = table.io.read(file.statistics_path)
    assert len(data) == file.file_size_in_bytes
    blobs = parse_puffin(data, "x").blobs
    for blob, described in zip(blobs, file.blob_metadata, strict=True):
        content = blob_content(data[blob.offset : blob.offset + blob.length], blob, "x")
        assert (blob.type, blob.compression_codec) == ("apache-datasketches-theta-v1", "zstd")
        assert int(parse_theta_sketch(content, "x").estimate) == int(blob.properties["ndv"])
        assert (described.fields, described.properties) == (blob.fields, blob.properties)
    names = table.schema.names_by_id
    return {names[b.fields[0]]: int(b.properties["ndv"]) for b in file.blob_metadata}


def test_columns_of_a_snapshot_are_counted_without_deleted_rows(orders: Table) -> None:
    orders.append(order_rows(*range(10))).append(order_rows(*range(6, 12)))
    first = orders.metadata.snapshots[0].snapshot_id
    orders.delete("id = 3")
    file = orders.compute_statistics()
    assert file is not None
    assert distinct(orders, file)["id"] == 11
    assert orders.metadata.statistics == (file,)
    assert distinct(orders, orders.compute_statistics(["id"], snapshot_id=first)) == {"id": 10}
    assert {f.snapshot_id for f in orders.metadata.statistics} == {first, file.snapshot_id}


def test_new_file_replaces_the_one_of_the_same_snapshot(orders: Table) -> None:
    orders.append(order_rows(3, 1)).compute_statistics()
    again = orders.compute_statistics(["amount"])
    assert orders.metadata.statistics == (again,)


def test_values_of_every_type_are_counted() -> None:
    rows = pa.table(
        {
            "flag": pa.array([True, False, None]),
            "small": pa.array([1, 2, 2], pa.int32()),
            "price": pa.array([Decimal("1.10"), Decimal("-1.10"), Decimal("1.10")], pa.decimal128(9, 2)),
            "day": pa.array([dt.date(2026, 1, 1), None, None]),
            "at": pa.array([1, 2, 3], pa.timestamp("us")),
            "ratio": pa.array([0.0, -0.0, None]),
            "text": pa.array(["", "a", "é"]),
            "raw": pa.array([b"\x00", b"", None]),
            "key": pa.array([uuid.UUID(int=1).bytes] * 3, pa.uuid()),
            "place": pa.array([{"city": "x"}, {"city": "y"}, None], pa.struct([("city", pa.string())])),
            "tags": pa.array([["a"], [], None]),
        }
    )
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.every", rows.schema).append(rows)
        expected = {
            "flag": 2, "small": 2, "price": 2, "day": 1, "at": 3, "ratio": 2, "text": 2, "raw": 1, "key": 1,
        }  # fmt: skip
        assert distinct(table, table.compute_statistics()) == expected
        assert distinct(table, table.compute_statistics(["place.city"])) == {"place.city": 2}
        for column in ("tags", "place", "tags.element"):
            with pytest.raises(InvalidInputError, match=column):
                table.compute_statistics([column])


def test_bad_arguments_change_nothing(orders: Table) -> None:
    assert orders.compute_statistics() is None
    orders.append(order_rows(3, 1))
    before = orders.metadata_location
    with pytest.raises(NotFoundError, match="no column `nope`"):
        orders.compute_statistics(["id", "nope"])
    with pytest.raises(InvalidInputError, match="at least one column"):
        orders.compute_statistics([])
    with pytest.raises(NotFoundError, match="no snapshot with id 5"):
        orders.compute_statistics(snapshot_id=5)
    with pytest.raises(InvalidInputError, match="expected a row engine"):
        orders.compute_statistics(engine="spark")  # type: ignore[arg-type]
    assert orders.refresh().metadata_location == before


def test_file_is_deleted_if_its_snapshot_expired_meanwhile(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(3, 1))
    old = orders.metadata.snapshots[0].snapshot_id
    orders.append(order_rows(3, 9))
    lake.load_table(orders.name).expire(snapshot_ids=[old])
    with pytest.raises(NotFoundError):
        orders.compute_statistics(snapshot_id=old)
    assert not [name for name in orders.io.list(orders.location) if name.endswith(".stats")]
