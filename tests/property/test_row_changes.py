"""Appends, overwrites, deletes and rewrites on random small tables, against a plain list of rows."""

import math
from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import bergline
from bergline import Lake, Table
from bergline.expressions.evaluate import evaluate
from bergline.expressions.predicate import Comparison, IsNull, Predicate
from bergline.format.manifest.manifest import partition_key
from bergline.format.partition.transforms import Bucket
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DOUBLE, INT, LONG, STRING, NestedField
from support.fixtures.add_deletes import equality_deletes
from support.fixtures.competing_writers import overtaken
from support.fixtures.predicate_strategies import bound_predicates

Row = dict[str, Any]
ARROW = pa.schema(
    [pa.field("n", pa.int64(), nullable=False), ("k", pa.int32()), ("s", pa.string()), ("d", pa.float64())]
)
SCHEMA = Schema(
    fields=(
        NestedField(1, "n", True, LONG),
        NestedField(2, "k", False, INT),
        NestedField(3, "s", False, STRING),
        NestedField(4, "d", False, DOUBLE),
    )
)
VALUES = {"k": [None, -1, 0, 1, 2], "s": [None, "", "a", "ab", "b"], "d": [None, -0.0, 0.5, math.nan, math.inf]}
PARTITIONS: list[list[str]] = [[], ["k"], ["s", "bucket(2, n)"], ["d"], ["truncate(1, s)"]]

some_rows = st.lists(st.fixed_dictionaries({name: st.sampled_from(v) for name, v in VALUES.items()}), max_size=6)
filters = bound_predicates(SCHEMA) | st.one_of(
    *(st.sampled_from(VALUES[n][1:]).map(lambda v, n=n: Comparison(n, "=", v)) for n in ("k", "s")),
    st.sampled_from([IsNull("k"), IsNull("s")]),
)
row_changes = st.one_of(
    st.tuples(st.just("append"), some_rows),
    st.tuples(st.just("delete"), filters),
    st.tuples(st.just("overwrite"), some_rows, filters),
    st.tuples(st.just("replace all"), some_rows),
    st.tuples(st.just("replace partitions"), some_rows),
    st.tuples(st.just("delete by equality"), st.just("n"), st.lists(st.integers(1, 20), min_size=1, max_size=4)),
    *(
        st.tuples(st.just("delete by equality"), st.just(name), st.lists(st.sampled_from(VALUES[name]), min_size=1))
        for name in ("k", "s")
    ),
)
changes = st.one_of(
    row_changes,
    st.tuples(st.just("compact"), bound_predicates(SCHEMA)),
    st.tuples(st.just("compact beside"), row_changes),
    st.just(("rewrite manifests",)),
    *(
        st.tuples(st.just("delete a key by both"), st.just(name), st.sampled_from(VALUES[name][1:]), some_rows)
        for name in ("k", "s")
    ),
)


class Model:
    """The rows of each branch, and how each row was when it was written."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {"main": [], "dev": []}
        self._numbers = count(1)

    def new(self, rows: list[Row]) -> list[Row]:
        """The rows with numbers that no other row has."""
        return [{"n": next(self._numbers)} | row for row in rows]


@settings(max_examples=60)
@given(
    steps=st.lists(st.tuples(st.sampled_from(["main", "dev"]), changes), min_size=1, max_size=7),
    partition_by=st.sampled_from(PARTITIONS),
    version=st.sampled_from(["1", "2", "3"]),
    mode=st.sampled_from(["copy-on-write", "merge-on-read"]),
)
def test_changes_do_to_a_table_what_they_do_to_a_list(
    steps: list[tuple[str, Any]], partition_by: list[str], version: str, mode: str
) -> None:
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        properties = {
            "format-version": version,
            "write.delete.mode": mode,
            "commit.manifest.min-count-to-merge": "2",
            "write.parquet.row-group-size-bytes": "1",
        }
        table = lake.create_table("db.t", ARROW, partition_by=partition_by, properties=properties)
        table.append(ARROW.empty_table())
        table.refs.create_branch("dev")
        model = Model()
        lineage: dict[str, dict[int, Any]] = {"main": {}, "dev": {}}
        for branch, change in steps:
            apply(lake, model, branch, change, partition_by)
            table.refresh()
            for ref, rows in model.rows.items():
                columns = [*ARROW.names, "_row_id", "_last_updated_sequence_number"]
                found = table.scan(ref=ref, columns=columns).to_arrow().to_pylist()
                assert sorted(map(key, found)) == sorted(map(key, rows))
                if version == "3":
                    check_lineage(found, lineage[ref])


def apply(lake: Lake, model: Model, branch: str, change: Any, partition_by: list[str]) -> None:
    table = lake.load_table("db.t")
    rows = model.rows[branch]
    match change:
        case ("compact", predicate):
            table.compact(predicate, branch=branch)
        case ("compact beside", other):
            rival = overtaken(lake, lambda: apply(lake, model, branch, other, partition_by))
            rival.load_table("db.t").compact(branch=branch)
        case ("rewrite manifests",):
            table.rewrite_manifests(branch=branch)
        case ("delete by equality", name, values):
            if table.metadata.format_version > 1:
                delete_values(table, branch, name, values)
                rows[:] = [row for row in rows if row[name] not in values]
        case ("delete a key by both", name, value, new):
            keyed = [row | {name: value} for row in new]
            apply(lake, model, branch, ("append", new + keyed), partition_by)
            apply(lake, model, branch, ("delete by equality", name, [value]), partition_by)
            apply(lake, model, branch, ("append", keyed), partition_by)
            apply(lake, model, branch, ("delete", Comparison(name, "=", value)), partition_by)
        case ("append", new):
            new = model.new(new)
            table.append(pa.Table.from_pylist(new, ARROW), branch=branch)
            rows += new
        case ("delete", predicate):
            table.delete(predicate, branch=branch)
            rows[:] = left_by(predicate, rows)
        case ("overwrite", new, predicate):
            new = model.new(new)
            table.overwrite(pa.Table.from_pylist(new, ARROW), predicate, branch=branch)
            rows[:] = [*left_by(predicate, rows), *new]
        case ("replace all", new):
            new = model.new(new)
            table.overwrite(pa.Table.from_pylist(new, ARROW), branch=branch)
            rows[:] = new
        case ("replace partitions", new):
            new = model.new(new)
            table.overwrite_partitions(pa.Table.from_pylist(new, ARROW), branch=branch)
            gone = {partition(row, partition_by) for row in new}
            rows[:] = [*(row for row in rows if partition(row, partition_by) not in gone), *new]


def delete_values(table: Table, branch: str, name: str, values: list[Any]) -> None:
    """An equality delete file in every partition that has rows, as engines write that do not look for them."""
    planned = table.scan(ref=branch).plan().files
    partitions = {partition_key(p.file): p.file.partition for p in planned}.values()
    keys, ids = pa.table([pa.array(values, ARROW.field(name).type)], [name]), [SCHEMA.names[name].id]
    deletes = [equality_deletes(table, keys, ids, partition) for partition in partitions]
    if deletes:
        table.row_delta(deletes=deletes, branch=branch, isolation="none")


def left_by(predicate: Predicate, rows: list[Row]) -> Iterator[Row]:
    return (row for row in rows if evaluate(predicate, row.__getitem__) is not True)


def partition(row: Row, partition_by: list[str]) -> tuple[str, ...]:
    """The partition of a row by the words of the specification, so that NaN equals itself."""
    values = {
        "k": row["k"],
        "s": row["s"],
        "d": row["d"],
        "truncate(1, s)": row["s"] and row["s"][:1],
        "bucket(2, n)": None if "bucket(2, n)" not in partition_by else bucket(row["n"]),
    }
    return tuple(str(values[term]) if values[term] is not None else "-" for term in partition_by)


def bucket(number: int) -> int:

    return Bucket(2).apply(LONG, number)


def key(row: Row) -> str:
    return str([row[name] for name in ARROW.names])


def check_lineage(found: list[Row], known: dict[int, Any]) -> None:
    """Every row has an id of its own, and what it was given first stays."""
    assert len({row["_row_id"] for row in found}) == len(found)
    for row in found:
        ids = row["_row_id"], row["_last_updated_sequence_number"]
        assert None not in ids
        assert known.setdefault(row["n"], ids) == ids
