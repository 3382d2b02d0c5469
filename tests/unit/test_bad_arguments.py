"""Wrong arguments of the public methods are one of our errors, and change nothing."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.arguments import counted
from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError

SCHEMA = pa.schema([("id", pa.int64())])
ROWS = pa.table({"id": [1]})

CREATE: list[dict[str, Any]] = [
    *({"partition_by": v} for v in ([5], 5, None, "id")),
    *({"properties": v} for v in ({5: "a"}, {"a": 5}, 5, [("a", "b")], {"a": "\ud800"}, {"\ud800": "a"})),
    *({"location": v} for v in (5, "\ud800")),
]
LAKE: dict[str, Callable[[Lake], Any]] = {
    "create_table": lambda lake: lake.create_table(5, SCHEMA),  # type: ignore[arg-type]
    "load_table": lambda lake: lake.load_table(("db", "t")),  # type: ignore[arg-type]
    "table_exists": lambda lake: lake.table_exists(5),  # type: ignore[arg-type]
    "drop_table": lambda lake: lake.drop_table(None),  # type: ignore[arg-type]
    "create_namespace": lambda lake: lake.create_namespace(5),  # type: ignore[arg-type]
    "namespace part": lambda lake: lake.create_namespace(("a", 5)),  # type: ignore[arg-type]
    "namespace text": lambda lake: lake.create_namespace("\ud800"),
    "namespace property": lambda lake: lake.create_namespace("q", {"a": 5}),  # type: ignore[dict-item]
    "namespace_exists": lambda lake: lake.namespace_exists(5),  # type: ignore[arg-type]
    "list_tables": lambda lake: lake.list_tables(5),  # type: ignore[arg-type]
    "table name of parts": lambda lake: lake.load_table(TableName((5,), "t")),  # type: ignore[arg-type]
    "table name without namespace": lambda lake: lake.load_table(TableName((), "t")),
    "table name with null": lambda lake: lake.load_table("db.a\0b"),
    "namespace with null": lambda lake: lake.create_namespace("d\0b"),
    "update_namespace": lambda lake: lake.update_namespace("db", 5),  # type: ignore[arg-type]
    "update_namespace value": lambda lake: lake.update_namespace("db", {"a": 5}),  # type: ignore[dict-item]
    "update_namespace remove": lambda lake: lake.update_namespace("db", remove="abc"),
    "update_namespace both": lambda lake: lake.update_namespace("db", {"a": "1"}, remove=["a"]),
    "update_namespace mark": lambda lake: lake.update_namespace("db", {"exists": "no"}),
    "update_namespace unmark": lambda lake: lake.update_namespace("db", remove=["exists"]),
    "create_namespace mark": lambda lake: lake.create_namespace("new", {"exists": "no"}),
    "namespace_properties": lambda lake: lake.namespace_properties(5),  # type: ignore[arg-type]
    "list_namespaces": lambda lake: lake.list_namespaces(5),  # type: ignore[arg-type]
    "unregister_table": lambda lake: lake.unregister_table(5),  # type: ignore[arg-type]
    "purge_table": lambda lake: lake.purge_table(5),  # type: ignore[arg-type]
    "create_view": lambda lake: lake.create_view(5, "SELECT 1", SCHEMA),  # type: ignore[arg-type]
    "create_view sql": lambda lake: lake.create_view("db.v", {"spark": 5}, SCHEMA),  # type: ignore[dict-item]
    "create_view location": lambda lake: lake.create_view("db.v", "SELECT 1", SCHEMA, location=5),  # type: ignore[arg-type]
    "load_view": lambda lake: lake.load_view(None),  # type: ignore[arg-type]
    "list_views": lambda lake: lake.list_views(5),  # type: ignore[arg-type]
    "drop_namespace": lambda lake: lake.drop_namespace([5]),  # type: ignore[arg-type]
}
TABLE: dict[str, Callable[[Any], Any]] = {
    **{f"filter {v!r}": lambda t, v=v: t.scan(v) for v in (5, 0, b"x", [1], "", "  ")},  # type: ignore[misc]
    **{f"columns {v!r}": lambda t, v=v: t.scan(columns=v) for v in (5, [5], "id", [], ["id", "ID"])},  # type: ignore[misc]
    **{f"snapshot {v!r}": lambda t, v=v: t.scan(snapshot_id=v) for v in ("x", 1.5, True)},  # type: ignore[misc]
    **{f"as of {v!r}": lambda t, v=v: t.scan(as_of_ms=v) for v in ("x", 1.5, -1)},  # type: ignore[misc]
    **{f"summary {v!r}": lambda t, v=v: t.append(ROWS, summary=v) for v in (5, {"a": 5}, {5: "a"})},  # type: ignore[misc]
    **{f"properties {v!r}": lambda t, v=v: t.set_properties(v) for v in (5, {5: "a"}, {"a": 5}, [1])},  # type: ignore[misc]
    **{f"remove {v!r}": lambda t, v=v: t.set_properties(remove=v) for v in (5, "abc", [5], [[]])},  # type: ignore[misc]
    **{f"ids {v!r}": lambda t, v=v: t.expire(snapshot_ids=v) for v in (5, ["x"], [[]])},  # type: ignore[misc]
    **{f"retain {v!r}": lambda t, v=v: t.expire(retain_last=v) for v in ("x", 1.5, 0)},  # type: ignore[misc]
    **{f"inspect {v!r}": lambda t, v=v: t.inspect(v) for v in (5, [])},  # type: ignore[misc]
    **{f"at {v!r}": lambda t, v=v: t.refs.create_branch("b", at=v) for v in (1.5, b"x")},  # type: ignore[misc]
    **{
        f"keep {v!r}": lambda t, v=v: t.refs.create_branch("b", min_snapshots_to_keep=v)  # type: ignore[misc]
        for v in ("x", 1.5, 2**31, True, 0)
    },
    "files": lambda t: t.append_files(5),
    "file": lambda t: t.overwrite_files([5]),
    "overwrite": lambda t: t.overwrite(ROWS, summary={"a": 5}),
    "overwrite engine": lambda t: t.overwrite(ROWS, "id = 1", engine="spark"),
    "delete engine": lambda t: t.delete("id = 1", engine=5),
    "compact engine": lambda t: t.compact(engine=object()),
    "branch name": lambda t: t.refs.create_branch(5),
    "tag name": lambda t: t.refs.create_tag([]),
    "drop": lambda t: t.refs.drop_branch([]),
    "drop tag": lambda t: t.refs.drop_tag(None),
    "fast forward": lambda t: t.refs.fast_forward(5, to="main"),
    "fast forward to": lambda t: t.refs.fast_forward("main", to=5),
    "retention": lambda t: t.refs.set_retention(5),
    "retention value": lambda t: t.refs.set_retention("main", max_ref_age_ms=2**63),
    "replace": lambda t: t.refs.replace_branch("main", retention=5),
    "item": lambda t: t.refs[[]],
}
CONNECT: list[dict[str, Any]] = [
    {"uri": 5},
    {"uri": "memory:", "warehouse": 5},
    {"uri": "memory:", "properties": 5},
    {"uri": "memory:", "properties": {5: "x"}},
    {"uri": "memory:", "name": 5},
    *({"uri": "memory:", "busy_timeout": v} for v in ("x", -1, float("nan"), 1e300, 10**400)),
]


@pytest.mark.parametrize("arguments", CREATE, ids=repr)
def test_wrong_argument_of_create_table_is_refused(lake: Lake, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"^expected "):
        lake.create_table("db.t", SCHEMA, **arguments)
    assert not lake.table_exists("db.t")


@pytest.mark.parametrize("call", LAKE.values(), ids=LAKE)
def test_wrong_argument_of_the_lake_is_refused(lake: Lake, call: Callable[[Lake], Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"^expected "):
        call(lake)


@pytest.mark.parametrize("call", TABLE.values(), ids=TABLE)
def test_wrong_argument_of_a_table_is_refused(lake: Lake, call: Callable[[Table], Any]) -> None:
    table = lake.create_table("db.t", SCHEMA).append(ROWS)
    before = table.metadata_location
    with pytest.raises(InvalidInputError, match=r"^expected "):
        call(table)
    assert table.refresh().metadata_location == before


def test_what_is_no_text_is_no_ref(orders: Table) -> None:
    assert 5 not in orders.refs
    assert [] not in orders.refs


@pytest.mark.parametrize("arguments", CONNECT, ids=repr)
def test_wrong_argument_of_connect_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"^expected "):
        bergline.connect(**arguments, create=True)


def test_things_are_counted_in_words_that_fit() -> None:
    found = [counted(n, "snapshot") for n in (0, 1, 1200)] + [counted(2, "entry")]
    assert found == ["0 snapshots", "1 snapshot", "1,200 snapshots", "2 entries"]
