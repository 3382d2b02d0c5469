"""Plans and rows next to a brute-force reader: small tables with every kind of delete, spec and evolved schema."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bergline
from bergline.catalog.identifiers import TableName
from bergline.table.table import Table
from support.fixtures.handwritten_tables import HandwrittenTable
from support.fixtures.sql_filters import EVERYTHING, sql_filters
from support.fixtures.table_strategies import comparable, tables
from support.models import brute_force_reader

FORMATS = ("AVRO", "ORC", "PARQUET")
slowly = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], report_multiple_bugs=False)


def opened(handwritten: HandwrittenTable) -> tuple[Table, str]:
    """The table in a lake in memory, and its metadata file."""
    lake = bergline.connect("memory:")
    lake.create_namespace("db")
    location = handwritten.finish()
    for path, content in handwritten.files.items():
        lake.catalog.io.create(path, content)
    lake.catalog.store.create(TableName(("db",), "hand"), location)
    return lake.load_table("db.hand"), location


def multiset(found: list[dict[str, Any]], names: Sequence[str]) -> Counter[str]:
    """Rows without their order; NaN equals itself, -0.0 is not 0.0."""
    return Counter(repr([row[name] for name in names]) for row in found)


def check_scan(handwritten: HandwrittenTable, data: st.DataObject) -> None:
    """A filter and some columns of the head of `main`: the rows, and the plan."""
    table, location = opened(handwritten)
    read = handwritten.files.__getitem__
    fields = handwritten.schemas[-1]
    text, truth = data.draw(st.just(EVERYTHING) | sql_filters(comparable(fields)))
    reserved = ["_file", "_pos", *(["_row_id", "_last_updated_sequence_number"] if handwritten.version > 2 else [])]
    names = data.draw(st.lists(st.sampled_from([*(f["name"] for f in fields), *reserved]), min_size=1, unique=True))
    expected = brute_force_reader.read_rows(read, location, keep=truth)
    scan = table.scan(text, columns=names)
    assert multiset(scan.to_arrow().to_pylist(), names) == multiset(expected, names)

    planned = {f.file.file_path: (f.sequence_number, sorted(d.file_path for d in f.deletes)) for f in scan.plan().files}
    allowed = {path: (number, deletes) for path, number, deletes in brute_force_reader.list_files(read, location)}
    assert {row["_file"] for row in expected} <= planned.keys()
    assert planned == {path: allowed[path] for path in planned}


def check_snapshot(handwritten: HandwrittenTable, data: st.DataObject) -> None:
    """All rows of a snapshot, in the schema that it had."""
    table, location = opened(handwritten)
    snapshot = data.draw(st.sampled_from(handwritten.snapshots))
    schema_id = snapshot["schema-id"]
    names = [f["name"] for f in handwritten.schemas[schema_id]]
    found = table.scan(snapshot_id=snapshot["snapshot-id"]).to_arrow()
    assert found.column_names == names
    expected = brute_force_reader.read_rows(
        handwritten.files.__getitem__, location, snapshot_id=snapshot["snapshot-id"], schema_id=schema_id
    )
    assert multiset(found.to_pylist(), names) == multiset(expected, names)


@given(tables(1), st.data())
@settings(slowly, max_examples=10)
def test_a_v1_table_reads_as_the_brute_force_reader_says(handwritten: HandwrittenTable, data: st.DataObject) -> None:
    check_scan(handwritten, data)


@given(tables(2, formats=FORMATS), st.data())
@slowly
def test_a_v2_table_reads_as_the_brute_force_reader_says(handwritten: HandwrittenTable, data: st.DataObject) -> None:
    check_scan(handwritten, data)


@given(tables(3, formats=FORMATS), st.data())
@slowly
def test_a_v3_table_reads_as_the_brute_force_reader_says(handwritten: HandwrittenTable, data: st.DataObject) -> None:
    check_scan(handwritten, data)


@given(st.sampled_from([1, 2, 3]).flatmap(tables), st.data())
@slowly
def test_old_snapshots_read_as_the_brute_force_reader_says(handwritten: HandwrittenTable, data: st.DataObject) -> None:
    check_snapshot(handwritten, data)
