"""Plans and rows next to a brute-force reader: small tables with every kind of delete, spec and evolved schema."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import brute_force
from hand_made import HandMadeTable
from hand_made_tables import comparable, tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sql_filters import EVERYTHING, sql_filters

import bergline
from bergline.catalog.identifiers import TableName
from bergline.table.table import Table

slowly = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], report_multiple_bugs=False)


def opened(hand_made: HandMadeTable) -> tuple[Table, str]:
    """The table in a lake in memory, and its metadata file."""
    lake = bergline.connect("memory:")
    lake.create_namespace("db")
    location = hand_made.finish()
    for path, content in hand_made.files.items():
        lake.catalog.io.create(path, content)
    lake.catalog.store.create(TableName(("db",), "hand"), location)
    return lake.load_table("db.hand"), location


def multiset(found: list[dict[str, Any]], names: Sequence[str]) -> Counter[str]:
    """Rows without their order; NaN equals itself, -0.0 is not 0.0."""
    return Counter(repr([row[name] for name in names]) for row in found)


def check_scan(hand_made: HandMadeTable, data: st.DataObject) -> None:
    """A filter and some columns of the head of `main`: the rows, and the plan."""
    table, location = opened(hand_made)
    read = hand_made.files.__getitem__
    fields = hand_made.schemas[-1]
    text, truth = data.draw(st.just(EVERYTHING) | sql_filters(comparable(fields)))
    reserved = ["_file", "_pos", *(["_row_id", "_last_updated_sequence_number"] if hand_made.version > 2 else [])]
    names = data.draw(st.lists(st.sampled_from([*(f["name"] for f in fields), *reserved]), min_size=1, unique=True))
    expected = brute_force.read_rows(read, location, keep=truth)
    scan = table.scan(text, columns=names)
    assert multiset(scan.to_arrow().to_pylist(), names) == multiset(expected, names)

    planned = {f.file.file_path: (f.sequence_number, sorted(d.file_path for d in f.deletes)) for f in scan.plan().files}
    allowed = {path: (number, deletes) for path, number, deletes in brute_force.list_files(read, location)}
    assert {row["_file"] for row in expected} <= planned.keys()
    assert planned == {path: allowed[path] for path in planned}


def check_snapshot(hand_made: HandMadeTable, data: st.DataObject) -> None:
    """All rows of a snapshot, in the schema that it had."""
    table, location = opened(hand_made)
    snapshot = data.draw(st.sampled_from(hand_made.snapshots))
    schema_id = snapshot["schema-id"]
    names = [f["name"] for f in hand_made.schemas[schema_id]]
    found = table.scan(snapshot_id=snapshot["snapshot-id"]).to_arrow()
    assert found.column_names == names
    expected = brute_force.read_rows(
        hand_made.files.__getitem__, location, snapshot_id=snapshot["snapshot-id"], schema_id=schema_id
    )
    assert multiset(found.to_pylist(), names) == multiset(expected, names)


@given(tables(1), st.data())
@settings(slowly, max_examples=10)
def test_a_v1_table_reads_as_the_brute_force_reader_says(hand_made: HandMadeTable, data: st.DataObject) -> None:
    check_scan(hand_made, data)


@given(tables(2), st.data())
@slowly
def test_a_v2_table_reads_as_the_brute_force_reader_says(hand_made: HandMadeTable, data: st.DataObject) -> None:
    check_scan(hand_made, data)


@given(tables(3), st.data())
@slowly
def test_a_v3_table_reads_as_the_brute_force_reader_says(hand_made: HandMadeTable, data: st.DataObject) -> None:
    check_scan(hand_made, data)


@given(st.sampled_from([1, 2, 3]).flatmap(tables), st.data())
@slowly
def test_old_snapshots_read_as_the_brute_force_reader_says(hand_made: HandMadeTable, data: st.DataObject) -> None:
    check_snapshot(hand_made, data)
