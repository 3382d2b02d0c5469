"""`lake.branches`: branches of the whole lake."""

import time

import pyarrow as pa
import pytest

import bergline
from bergline import Lake
from bergline.errors import (
    InvalidInputError,
    NotFoundError,
    RefusedError,
    TablesRefusedError,
    UnsupportedError,
)
from bergline.governance.governance import governance_of
from bergline.governance.lake_branches.model import NewLakeBranch

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def tables(lake: Lake) -> Lake:
    """A lake with three tables of one row, and one without."""
    for name in ("db.orders", "db.items", "db.customers"):
        lake.create_table(name, SCHEMA).append(rows(1))
    lake.create_table("db.empty", SCHEMA)
    return lake


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids}, schema=SCHEMA)


def ids(lake: Lake, name: str) -> list[int]:
    return sorted(lake.load_table(name).scan().to_arrow().column("id").to_pylist())


def test_branch_is_written_compared_and_published_in_one_step(tables: Lake) -> None:
    made = tables.branches.create("staging")
    assert tables.branches.list() == [tables.branches.get("staging")] == [made]
    assert list(tables.branches.diff("staging")) == []
    staging = tables.at("staging")
    staging.load_table("db.orders").append(rows(2, 3)).append(rows(4))
    staging.load_table("db.empty").append(rows(5))
    staging.load_table("db.items").delete("id = 1")
    tables.load_table("db.orders").append(rows(9))
    found = {d.table: (d.ahead, d.behind, d.added_rows, d.removed_rows) for d in tables.branches.diff("staging")}
    assert found == {"db.empty": (1, 0, 1, 0), "db.items": (1, 0, 0, 1), "db.orders": (2, 1, 3, 1)}
    with pytest.raises(TablesRefusedError, match=r"cannot publish `staging` into `main`: 1 of 3 tables"):
        tables.branches.publish("staging")
    assert [branch.name for branch in tables.branches.list()] == ["staging"]
    report = staging.branches.publish("staging", merge=True, tag="v1")
    assert [(one.table, one.what) for one in report.tables] == [
        ("db.empty", "created"),
        ("db.items", "fast-forwarded"),
        ("db.orders", "merged"),
    ]
    assert (ids(tables, "db.orders"), ids(tables, "db.items")) == ([1, 2, 3, 4, 9], [])
    assert (tables.branches.list(), tables.tables_with_ref("staging")) == ([], [])
    with pytest.raises(NotFoundError, match=r"the lake has no such branch, or it was dropped"):
        staging.load_table("db.customers").append(rows(2))


def test_published_branch_is_kept_on_request(tables: Lake) -> None:
    tables.branches.create("staging")
    tables.at("staging").load_table("db.orders").append(rows(2))
    tables.branches.publish("staging", keep_branch=True)
    assert [branch.name for branch in tables.branches.list()] == ["staging"]
    tables.at("staging").load_table("db.orders").append(rows(3))
    assert (ids(tables, "db.orders"), ids(tables.at("staging"), "db.orders")) == ([1, 2], [1, 2, 3])


def test_branch_that_no_table_has_joined_is_published_and_dropped(tables: Lake) -> None:
    for end in (tables.branches.publish, tables.branches.drop):
        tables.branches.create("staging")
        assert end("staging").tables == ()
        assert tables.branches.list() == []


def test_dropped_branch_is_gone_from_all_tables(tables: Lake) -> None:
    tables.branches.create("staging")
    for name in ("db.orders", "db.empty"):
        tables.at("staging").load_table(name).append(rows(2))
    report = tables.branches.drop("staging")
    assert [(one.table, one.what) for one in report.tables] == [("db.empty", "dropped"), ("db.orders", "dropped")]
    assert (tables.branches.list(), tables.tables_with_ref("staging")) == ([], [])
    for call in (tables.branches.drop, tables.branches.publish, tables.branches.get, tables.branches.diff):
        with pytest.raises(NotFoundError, match="no branch `staging` of the lake"):
            call("staging")


def test_overviews_have_the_tables_and_the_bytes_that_only_the_branch_keeps(tables: Lake) -> None:
    tables.branches.create("empty")
    tables.branches.create("staging")
    orders = tables.load_table("db.orders")
    before = orders.inspect("files").column("file_path").to_pylist()
    found = tables.at("staging").load_table("db.orders").append(rows(2)).inspect("files").to_pylist()
    (new,) = (file["file_size_in_bytes"] for file in found if file["file_path"] not in before)
    empty, staging = tables.branches.overviews()
    assert (empty.branch.name, empty.tables, empty.pinned_bytes) == ("empty", (), 0)
    assert (staging.branch.name, staging.tables) == ("staging", ("db.orders",))
    (difference,) = tables.branches.diff("staging")
    assert staging.pinned_bytes == difference.pinned_bytes > new
    tables.load_table("db.orders").refs.create_tag("v1", at="staging")
    (difference,) = tables.branches.diff("staging")
    assert difference.pinned_bytes == 0


def test_branch_of_some_tables_takes_no_others(tables: Lake) -> None:
    tables.branches.create("staging", tables=["db.o*", "sales.*"])
    staging = tables.at("staging")
    staging.load_table("db.orders").append(rows(2))
    with pytest.raises(RefusedError, match=r"cannot write `db\.items` at branch `staging`: the branch is of `db\.o\*`"):
        staging.load_table("db.items").append(rows(2))
    assert tables.tables_with_ref("staging") == ["db.orders"]


def test_expired_branch_takes_no_new_tables_and_is_still_published(tables: Lake) -> None:
    kept = governance_of(tables.catalog).lake_branches
    assert kept is not None
    kept.create(NewLakeBranch("staging", (), time.time_ns() // 1_000_000 + 1500))
    staging = tables.at("staging")
    staging.load_table("db.orders").append(rows(2))
    time.sleep(1.6)
    staging.load_table("db.orders").append(rows(3))
    with pytest.raises(RefusedError, match="the branch has expired, and takes no more tables"):
        staging.load_table("db.items").append(rows(2))
    assert len(tables.branches.publish("staging").tables) == 1


@pytest.mark.parametrize(
    ("expires", "message"),
    [("soon", "a duration like 90d, 12h or 30m, found `soon`"), (0, "expires"), (True, "expires")],
)
def test_wrong_age_is_refused(lake: Lake, expires: str | int, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        lake.branches.create("staging", expires=expires)
    assert lake.branches.list() == []


def test_branch_expires_after_its_time(lake: Lake) -> None:
    for name, expires, milliseconds in (("a", "2h", 7_200_000), ("b", 90_000, 90_000)):
        made = lake.branches.create(name, expires=expires)
        assert made.expires_ms is not None
        assert abs(made.expires_ms - made.created_ms - milliseconds) < 1000


def test_single_text_is_no_list_of_patterns(lake: Lake) -> None:
    with pytest.raises(InvalidInputError, match="expected a list of table patterns, found the text `db"):
        lake.branches.create("staging", tables="db.*")


def test_catalog_without_a_database_keeps_none() -> None:
    with bergline.connect("memory:") as lake, pytest.raises(UnsupportedError, match="keeps branches of the lake"):
        lake.branches.list()


def test_tables_of_the_branch_alone_are_published_and_dropped_with_it(tables: Lake) -> None:
    for end, listed in ((tables.branches.drop, False), (tables.branches.publish, True)):
        tables.branches.create("staging")
        staging = tables.at("staging")
        new = staging.create_table("db.new", SCHEMA)
        staging.load_table("db.orders").append(rows(2))
        with pytest.raises(
            RefusedError, match=r"cannot publish `staging`: table `db\.new` was created on it and is empty"
        ):
            tables.branches.publish("staging")
        new.append(rows(7))
        (found,) = (one for one in tables.branches.diff("staging") if one.table == "db.new")
        assert (found.ahead, found.behind, found.added_rows) == (1, 0, 1)
        assert sorted(one.table for one in end("staging").tables) == ["db.new", "db.orders"]
        assert (tables.branches.list(), "db.new" in tables.list_tables()) == ([], listed)
        assert tables.table_exists("db.new") is listed
